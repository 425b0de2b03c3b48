/** Test runner settings: one suite for unit, property, contract and end-to-end tests. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    maxWorkers: 2,
    reporters: process.env.CI_REPORT
      ? ['default', ['json', { outputFile: process.env.CI_REPORT }]]
      : ['default'],
  },
})
