/** The names of requests: the client's where it can be, and never one that a request under way has. */
import { expect, it } from 'vitest'
import { ownRequestId } from '../../src/edge/request-id.ts'

it('a request never gets the id of one that is under way, however many were drawn in vain', () => {
  const refused: string[] = []
  const own = ownRequestId('same', (id) => refused.length < 3 && refused.push(id) > 0)
  expect(refused).toContain('same')
  expect(refused).toHaveLength(3)
  expect(refused).not.toContain(own)
  expect(own).toMatch(/^same\.[0-9a-f]{8}$/)
})

it('a request keeps the id of its client while no other has it', () => {
  expect(ownRequestId('mine', () => false)).toBe('mine')
})
