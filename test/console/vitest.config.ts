/** Settings of the tests that need a browser or a terminal: `npm run test:console`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/console/**/*.console.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
