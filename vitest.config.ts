import { defineConfig } from 'vitest/config'

const conditions = ['@convoke/source']

/** They take longer than the gate has: `npm test` runs them, `CONVOKE_SUITES=short` does not. */
const LONG_SUITES = [
  'packages/host/test/{sign-in-kills,sign-ins*,keyring,store-lock-fuzz,sign-in-account,oauth-live,endurance,races-real}.test.ts',
  'packages/cli/test/{login,auth-status,serve-sign-ins,sign-in-secrets,add-sign-in,ending,twelve-servers}.test.ts',
  'packages/testkit/test/authorization-server.test.ts',
]

export default defineConfig({
  resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] },
  ssr: { resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: process.env['CONVOKE_SUITES'] === 'short' ? LONG_SUITES : [],
    setupFiles: ['packages/testkit/src/leak-check.ts'],
    pool: 'forks',
    // One more than a small machine has processors: most tests wait for processes and sockets.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
})
