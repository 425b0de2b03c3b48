/** Laws of the latency profiles and of the step formula. */
import { describe, expect, it } from 'vitest'
import { nearestProfiles, profile, profileIds } from '../../src/sim/profiles.ts'
import { idlePrefillMs, stepMs } from '../../src/sim/step-time.ts'

const decodes = (sequences: number, contextTokens: number) => ({
  prefillTokens: 0,
  prefillContextTokens: 0,
  decodeSequences: sequences,
  decodeContextTokens: contextTokens,
})

describe('profiles', () => {
  it('holds 36 fitted profiles and the invented one', () => {
    expect(profileIds()).toHaveLength(37)
    expect(new Set(profileIds()).size).toBe(37)
    const llama = profile('Llama-3.1-8B/H100-80G-SXM/tp1')
    expect(llama.decode.baseMs).toBeCloseTo(6.46, 1)
    expect(llama.kvCapacityTokens).toBe(445_480)
    expect(profile('Llama-2-7B/A40-48G/tp1/vidur').stepOverheadMs).toBe(1)
  })

  it('names the nearest ids when one is unknown', () => {
    expect(() => profile('llama-3.1-8b/H100')).toThrow(
      /unknown profile "llama-3.1-8b\/H100".*Llama-3\.1-8B\/H100/,
    )
    expect(nearestProfiles('Qwen3-32B', 3).every((id) => id.startsWith('Qwen3-32B'))).toBe(true)
  })

  it('composes an 8192-token chunk as the published points do', () => {
    // Composed kernel time of that chunk on an idle A100: 551.7 ms; the fit is within its stated error.
    const ms = idlePrefillMs(profile('Llama-3.1-8B/A100-80G-SXM/tp1'), 8192, 8192)
    expect(Math.abs(ms / 551.7 - 1)).toBeLessThan(0.06)
  })

  it('keeps the slow profile below 500 tokens/s at its full batch', () => {
    const slow = profile('demo/slow')
    const batch = slow.defaults.maxNumSeqs
    expect((batch / stepMs(slow, decodes(batch, batch * 300))) * 1000).toBeLessThan(500)
  })

  it('never makes a step shorter by adding work', () => {
    for (const id of profileIds()) {
      const entry = profile(id)
      for (const sequences of [0, 1, 64, 256]) {
        let beforeMs = sequences === 0 ? 0 : stepMs(entry, decodes(sequences, sequences * 500))
        for (const tokens of [1, 16, 256, 2048]) {
          const work = {
            ...decodes(sequences, sequences * 500),
            prefillTokens: tokens,
            prefillContextTokens: tokens ** 2 / 2,
          }
          const ms = stepMs(entry, work)
          expect(ms, `${id} ${sequences}+${tokens}`).toBeGreaterThanOrEqual(beforeMs)
          beforeMs = ms
        }
      }
    }
  })
})
