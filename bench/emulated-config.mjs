/** The configuration that the benches over simulated engines share: every class has the same promise. */

const PROMISE = '{ ttft: 800ms, ttft_per_1k_tokens: 2s, tpot: 80ms }'

/** A whole file for Sluice; `head` are its lines about addresses and models. */
export function configText(head) {
  const classes = ['chat', 'voice', 'autocomplete', 'agent', 'batch'].map((one) => `  ${one}: ${PROMISE}`)
  return [...head, 'classes:', ...classes, 'default_class: chat', 'auth: none', 'mode: enforce', ''].join(
    '\n',
  )
}
