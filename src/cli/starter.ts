/** The file that `sluice init` writes. */

export const STARTER = `# Sluice: what it serves, to whom, and what it promises. Every key: docs/configuration.md
# For completion in the editor: sluice schema > sluice.schema.json, and this as the first line:
# yaml-language-server: $schema=./sluice.schema.json

listen: 127.0.0.1:8080            # 0.0.0.0:8080 once you have tenants below
admin:
  listen: 127.0.0.1:9090          # metrics, probes, console, reload
mode: shadow                      # watch for a day what it would do, then: enforce

models:
  - name: default                 # what clients ask for
    served_name: meta-llama/Llama-3.1-8B-Instruct   # what the engine is asked for
    # profile: Llama-3.1-8B/H100-80G-SXM/tp1        # a head start; without it Sluice learns from nothing
    replicas:
      - http://127.0.0.1:8000     # your vLLM
      # - { dns: vllm-headless.llm.svc, port: 8000 }   # every address behind a name

classes:                          # a promise per workload; keep those you have
  chat:         { ttft: 500ms, tpot: 50ms, objective: 99% }
  voice:        { ttft: 300ms, tpot: 60ms, objective: 99.5%, weight: 4 }
  autocomplete: { ttft: 300ms, objective: 99% }
  agent:        { ttft: 2s, ttft_per_1k_tokens: 250ms, e2e: 20s, objective: 98%, overload: wait, max_wait: 30s }
  batch:        { overload: wait, max_wait: 10m }   # no targets: filled into leftover capacity
  best-effort:  {}                # what unclassified traffic gets unless default_class says otherwise

default_class: chat
products: []                      # rules from requests to classes, e.g.
  # - { name: ide, match: { path: /v1/completions }, class: autocomplete }
  # - { name: voice-bot, match: { header: { x-product: voice-bot } }, class: voice }

auth: none                        # open to everyone who reaches the port; with tenants: keys
# tenants:                        # sluice key --tenant acme
#   - name: acme
#     key_sha256: ["<sha256 of the key>"]
#     classes: [chat, voice]
`
