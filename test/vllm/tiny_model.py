"""Writes the directory of a small Llama that vLLM can serve with random weights: config and tokenizer, no weights.

Usage: tiny_model.py DIRECTORY. Nothing is downloaded; the result is the same on every machine.
"""

import itertools
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
LAYERS, HIDDEN, HEADS, KV_HEADS = 6, 384, 6, 2
MAX_POSITION = 32768
PAD, END, BEGIN_TURN, END_TURN = "<|pad|>", "<|end|>", "<|turn|>", "<|over|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|turn|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% elif message.content %}{% for part in message.content %}{{ part.text or '' }}{% endfor %}{% endif %}"
    "<|over|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def pseudo_text(lines: int = 12_000):
    """Sentences of invented words, frequent ones first, so that a trained vocabulary looks like one of a language."""
    dice = random.Random(20)
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprstvz", ["a", "e", "i", "o", "u", "an", "er"])]
    words = ["".join(dice.choices(syllables, k=dice.choice((1, 2, 2, 3)))) for _ in range(4000)]
    weights = [1.0 / rank for rank in range(2, len(words) + 2)]
    for number in range(lines):
        yield f"{' '.join(dice.choices(words, weights, k=14))}, {number}.\n"


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, END, BEGIN_TURN, END_TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(pseudo_text(), trainer)
    return tokenizer


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    ids = {token: tokenizer.token_to_id(token) for token in (PAD, END, END_TURN)}
    ends = {"eos_token_id": ids[END_TURN], "pad_token_id": ids[PAD]}
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": MAX_POSITION,
            "eos_token": END_TURN,
            "pad_token": PAD,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": tokenizer.get_vocab_size(),
            "num_hidden_layers": LAYERS,
            "hidden_size": HIDDEN,
            "intermediate_size": 3 * HIDDEN,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HIDDEN // HEADS,
            "max_position_embeddings": MAX_POSITION,
            "rope_theta": 500000.0,
            "rms_norm_eps": 1e-5,
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "bos_token_id": ids[END],
            **ends,
        },
        "generation_config.json": ends,
    }
    tokenizer.save(str(directory / "tokenizer.json"))
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
