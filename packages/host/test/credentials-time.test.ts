// A start that has to ask for credentials: what they take is not its time.
import { nodePlatform } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { StartupBudget } from '../src/protocol/budget.ts'
import { hostOf, http, statusOf } from './support.ts'

const STARTUP_TIMEOUT_MS = 2_000

verifies('http.024', async () => {
  await using server = await startScriptedHttp({ token: 'token-1' })
  let token = 0
  const { host } = await hostOf([http('slow', server.url, { startupTimeoutMs: STARTUP_TIMEOUT_MS })], {
    authorization: () => ({
      header: () => `Bearer token-${token}`,
      challenge: async () => {
        await new Promise((resolve) => setTimeout(resolve, STARTUP_TIMEOUT_MS + 500))
        return ++token > 0
      },
    }),
  })
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'slow')).toMatchObject({ state: 'ready' })
})

test('the clock of a start stands still until all that it waits for is there, and goes on where it stood', () => {
  let nowMs = 0
  const timers = new Map<object, number>()
  const budget = new StartupBudget({
    server: 's',
    startupTimeoutMs: 1_000,
    platform: {
      ...nodePlatform,
      now: () => nowMs,
      setTimer: (_callback, ms) => {
        const handle = {}
        timers.set(handle, nowMs + ms)
        return handle
      },
      clearTimer: (handle) => void (handle !== undefined && timers.delete(handle)),
    },
  })
  nowMs = 400
  budget.pause()
  budget.pause()
  nowMs = 90_000
  expect([budget.leftMs, timers.size]).toEqual([600, 0])
  budget.resume()
  expect([budget.leftMs, timers.size]).toEqual([600, 0])
  budget.resume()
  expect([budget.leftMs, [...timers.values()]]).toEqual([600, [90_700]])
  // Nothing is started anew once it is stopped.
  budget.pause()
  budget.stop()
  budget.resume()
  expect([timers.size, budget.signal.aborted]).toEqual([0, false])
})
