"""Writes a small llama model with random weights, so that a real llama.cpp server has something to serve.

    python tiny_model.py FILE

A token is a byte. What it says is noise, and takes long enough that requests queue.
"""

import sys

import numpy
from gguf import GGUFWriter, TokenType

LAYERS, WIDTH, HEADS, INNER, CONTEXT_TOKENS = 6, 384, 6, 1024, 16384


def printable_bytes():
    """The 256 bytes as byte-level BPE spells them: printable ones as they are, others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def write(path):
    control = ["<bos>", "<eos>"]
    words = printable_bytes() + control + ["\u0100\u0100"]
    kinds = [TokenType.NORMAL] * 256 + [TokenType.CONTROL] * len(control) + [TokenType.NORMAL]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types(kinds)
    # One merge at least is asked for; it joins two bytes that text does not have.
    writer.add_token_merges(["\u0100 \u0100"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    random = numpy.random.default_rng(7)

    def weights(name, rows, columns):
        writer.add_tensor(name, (0.04 * random.standard_normal((rows, columns))).astype(numpy.float32))

    weights("token_embd.weight", len(words), WIDTH)
    weights("output.weight", len(words), WIDTH)
    norms = ["output_norm"]
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        weights(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        weights(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        weights(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
        norms += [f"blk.{layer}.attn_norm", f"blk.{layer}.ffn_norm"]
    for name in norms:
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
