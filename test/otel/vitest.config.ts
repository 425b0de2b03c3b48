/** Settings of the tests that need a real OpenTelemetry Collector: `npm run test:otel`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/otel/**/*.otel.ts'],
    testTimeout: 60_000,
    hookTimeout: 600_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
