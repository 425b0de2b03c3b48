/** Prompts have the wanted size, share what they are told to share, and nothing else. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BYTES_PER_TOKEN, createPromptWriter } from '../../src/load/prompt.ts'

describe('prompt writer', () => {
  it('writes four bytes a token and the same text for the same seed', () => {
    const law = fc.property(fc.integer({ min: 1, max: 5000 }), fc.nat(1000), (tokens, number) => {
      const text = createPromptWriter(1).write(tokens, `r${number}`)
      expect(Buffer.byteLength(text)).toBe(tokens * BYTES_PER_TOKEN)
      expect(createPromptWriter(1).write(tokens, `r${number}`)).toBe(text)
    })
    fc.assert(law, { numRuns: 30 })
  })

  it('shares exactly the wanted beginning', () => {
    const writer = createPromptWriter(1)
    const shared = { key: 'agent-1', tokens: 100 }
    const [one, two] = [writer.write(200, 'r1', shared), writer.write(200, 'r2', shared)]
    expect(one.slice(0, 400)).toBe(two.slice(0, 400))
    expect(one.slice(400, 408)).not.toBe(two.slice(400, 408))
    expect(writer.write(200, 'r1', { key: 'agent-2', tokens: 100 }).slice(0, 400)).not.toBe(one.slice(0, 400))
  })

  it('begins unlike any other prompt when nothing is shared', () => {
    const writer = createPromptWriter(1)
    expect(writer.write(50, 'r1').slice(0, 8)).not.toBe(writer.write(50, 'r2').slice(0, 8))
  })
})
