"""Kroshka: documents go in, cited passages come out, each with its breadcrumb."""

__version__ = "0.1.0"
