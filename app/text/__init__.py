"""Pure text: normalisation, weights, labels, sentence cuts, the lexical tokenizer."""
