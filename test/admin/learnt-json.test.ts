/** What the predictor learnt loses nothing on its way to /replicas, and comes there in snake_case. */
import { describe, expect, it } from 'vitest'
import { type LearntState, learntJson } from '../../src/admin/learnt-json.ts'
import { createSluice } from '../../src/policies/sluice.ts'
import { openWorld, warmUp } from '../property/gate-script.ts'
import { GateWorld } from '../property/gate-world.ts'

/** Each figure by its path, written without case and underscores. */
function figures(value: unknown, path = ''): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return { [path]: value }
  const parts = Object.entries(value).map(([key, inner]) =>
    figures(inner, `${path}/${key.replaceAll('_', '').toLowerCase()}`),
  )
  return Object.assign({}, ...parts)
}

describe('learntJson', () => {
  it('has every figure of a snapshot of Sluice under its own name in snake_case', () => {
    const scheduler = createSluice()
    const world = new GateWorld(scheduler)
    openWorld(world)
    warmUp(world)
    const snapshot = scheduler.snapshot() as LearntState
    const json: unknown = JSON.parse(JSON.stringify(learntJson(snapshot)))
    expect(Object.keys(figures(json)).length).toBeGreaterThan(20)
    expect(figures(json)).toEqual(figures(snapshot))
    const keys = [...JSON.stringify(json).matchAll(/"(\w+)":/g)].map(([, key]) => key)
    expect(keys.filter((key) => key !== key?.toLowerCase())).toEqual([])
  })
})
