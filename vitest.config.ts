import { defineConfig } from 'vitest/config'

const conditions = ['@convoke/source']

export default defineConfig({
  resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] },
  ssr: { resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    setupFiles: ['packages/testkit/src/leak-check.ts'],
    pool: 'forks',
    // One more than a small machine has processors: most tests wait for processes and sockets.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
  },
})
