"""Derives the constant mean of token vectors again, from the sentences of `calibration.txt`:

    python -m app.clients.local_model.token_mean CACHE_FOLDER

writes `token_mean.npy`. Raise VECTORS_VERSION when the sentences or the model change.
"""

import sys
from pathlib import Path

import numpy as np

from app.clients.local_model.encoder import E5Encoder
from app.clients.local_model.loading import load_network
from app.clients.local_model.token_rows import MEAN_FILE
from app.domain.vectors import FloatArray

SENTENCES_FILE = Path(__file__).with_name("calibration.txt")


def derive_token_mean(encoder: E5Encoder) -> FloatArray:
    """Mean over all content tokens of the sentences (Russian, English, Chinese, Japanese), shape (dimension,)."""
    sentences = SENTENCES_FILE.read_text(encoding="utf-8").splitlines()
    states = [encoder.content(encoder.hidden_states(encoder.passage_tokens(sentence))) for sentence in sentences]
    return np.asarray(np.concatenate(states).mean(axis=0, dtype=np.float64), dtype=np.float32)


def main() -> None:
    weights, session = load_network(cache_dir=Path(sys.argv[1]), threads=2)
    no_mean = np.zeros(weights.sizes.hidden, np.float32)
    mean = derive_token_mean(E5Encoder(weights=weights, session=session, token_mean=no_mean))
    np.save(MEAN_FILE, mean, allow_pickle=False)


if __name__ == "__main__":
    main()
