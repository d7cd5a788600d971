// The time that credentials take: it is nobody's, it is limited, and whoever waits can leave.

import { verifies } from '@convoke/testkit'
import { nodePlatform, type Platform } from '@convoke/wire'
import { describe, expect } from 'vitest'
import type { Authorization } from '../src/target.ts'
import {
  CLIENTS,
  connect,
  failure,
  type Handler,
  json,
  legacy,
  modern,
  startHttp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const echo = (headers: Record<string, string> = {}): Handler =>
  legacy(
    (message, response, request) => json(response, message, textResult(String(request.headers.authorization))),
    {},
    headers,
  )

/** Refuses one token after the other: the number in it has to be what the test says. */
function guarded(good: () => number, rest: Handler): Handler {
  return (message, response, request) =>
    request.headers.authorization === `Bearer ${good()}`
      ? rest(message, response, request)
      : response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
}

/**
 * A platform whose clock the test moves on by hand, on top of the real one: everything that has become due is called at once.
 * No timer of it is late, so limits are passed exactly when the test passes them.
 */
function movableClock(): Platform & { pass(ms: number): void } {
  let aheadMs = 0
  const timers = new Map<object, { atMs: number; callback: () => void; real: object }>()
  const now = (): number => nodePlatform.now() + aheadMs
  return {
    ...nodePlatform,
    now,
    setTimer(callback, ms, kind) {
      const handle = {}
      const fire = (): void => {
        if (timers.delete(handle)) callback()
      }
      timers.set(handle, { atMs: now() + ms, callback: fire, real: nodePlatform.setTimer(fire, ms, kind) })
      return handle
    },
    clearTimer(handle) {
      const timer = handle === undefined ? undefined : timers.get(handle)
      if (handle === undefined || timer === undefined) return
      timers.delete(handle)
      nodePlatform.clearTimer(timer.real)
    },
    pass(ms) {
      aheadMs += ms
      for (const [, { atMs, callback, real }] of [...timers])
        if (atMs <= now()) {
          nodePlatform.clearTimer(real)
          callback()
        }
    },
  }
}

/** Tokens that the test gives out, whenever it likes. */
class SlowWallet implements Authorization {
  token = 0
  /** What is being waited for. */
  readonly asked: { what: 'header' | 'challenge'; give: () => void }[] = []
  slow: 'header' | 'challenge' | 'nothing' = 'nothing'

  header(): string | Promise<string> {
    if (this.slow !== 'header') return `Bearer ${this.token}`
    return new Promise((resolve) => this.asked.push({ what: 'header', give: () => resolve(`Bearer ${this.token}`) }))
  }
  challenge(): Promise<boolean> {
    if (this.slow !== 'challenge') return Promise.resolve(false)
    return new Promise((resolve) => this.asked.push({ what: 'challenge', give: () => resolve(++this.token > 0) }))
  }
}

for (const client of CLIENTS)
  describe(client, () => {
    verifies('http.023', async () => {
      let good = 0
      await using server = await startHttp(guarded(() => good, echo()))
      const wallet = new SlowWallet()
      const platform = movableClock()
      await using session = await connect(server.url, { client, authorization: wallet }, { platform })
      for (const slow of ['header', 'challenge'] as const)
        for (const limits of [{ idleTimeoutMs: 10_000 }, { totalTimeoutMs: 10_000 }]) {
          wallet.slow = slow
          if (slow === 'challenge') good++
          const call = session.callTool('x', {}, limits)
          await until(() => wallet.asked.length === 1)
          platform.pass(60_000)
          wallet.slow = 'nothing'
          wallet.asked.pop()?.give()
          expect(textOf(await call), `${slow} ${Object.keys(limits)}`).toBe(`Bearer ${good}`)
        }
      expect(session.waitedMs).toBeGreaterThanOrEqual(240_000)
      // The clock of the call has stood still, and goes on.
      await using silent = await startHttp(
        legacy((message, response, { headers }) => {
          if (message.params?.name === 'silent') return
          return json(response, message, textResult(String(headers.authorization)))
        }),
      )
      await using other = await connect(silent.url, { client, authorization: wallet }, { platform })
      wallet.slow = 'header'
      const call = failure(other.callTool('silent', {}, { totalTimeoutMs: 10_000, idleTimeoutMs: 0 }))
      await until(() => wallet.asked.length === 1)
      platform.pass(60_000)
      wallet.asked.pop()?.give()
      await until(() => silent.log.includes('tools/call'))
      platform.pass(10_001)
      expect(await call).toMatchObject({ code: 'timed-out', details: { limit: 'total', sent: true } })
      wallet.slow = 'nothing'
    })

    verifies('http.024', async () => {
      await using server = await startHttp(
        guarded(
          () => 1,
          legacy((message, response) => json(response, message, {})),
        ),
      )
      const wallet = new SlowWallet()
      wallet.slow = 'challenge'
      const platform = movableClock()
      const phases: string[] = []
      const started = connect(
        server.url,
        { client, authorization: wallet },
        {
          platform,
          startupTimeoutMs: 10_000,
          onCredentials: (phase) => phases.push(phase),
        },
      )
      await until(() => wallet.asked.length === 1)
      platform.pass(100_000)
      wallet.asked.pop()?.give()
      await using session = await started
      expect(session.era).toBe('legacy')
      expect(phases).toEqual(['waiting', 'over'])
      // What was used up before and what comes after make the budget together.
      let refuse = (): void => {}
      await using silent = await startHttp((_message, response, request) => {
        if (request.headers.authorization === 'Bearer 2') return // never answers
        refuse = () => response.writeHead(401).end()
      })
      const failed = failure(
        connect(silent.url, { client, authorization: wallet }, { platform, startupTimeoutMs: 100_000 }),
      )
      await until(() => silent.log.length === 1)
      platform.pass(40_000)
      refuse()
      await until(() => wallet.asked.length === 1)
      platform.pass(100_000)
      wallet.asked.pop()?.give()
      await until(() => silent.log.length === 2)
      platform.pass(30_000)
      expect(silent.openConnections).toBe(1)
      platform.pass(30_000)
      expect(await failed).toMatchObject({
        code: 'timed-out',
        message: 'The server did not start within 100000 ms',
        details: { limit: 'startup' },
      })
    })

    verifies('http.025', async () => {
      let good = 0
      await using server = await startHttp(
        guarded(
          () => good,
          modern((message, response) => {
            const cursor = (message.params as { cursor?: string }).cursor
            const tool = { name: `t${cursor ?? ''}`, inputSchema: { type: 'object' } }
            const next = cursor === undefined ? { nextCursor: '1' } : {}
            return json(response, message, {
              resultType: 'complete',
              tools: [tool],
              ttlMs: 0,
              cacheScope: 'private',
              ...next,
            })
          }),
        ),
      )
      const wallet = new SlowWallet()
      const platform = movableClock()
      await using session = await connect(server.url, { client, authorization: wallet }, { platform })
      good = 1
      wallet.slow = 'challenge'
      const listed = session.list('tools', { timeoutMs: 10_000 })
      await until(() => wallet.asked.length === 1)
      platform.pass(60_000)
      wallet.asked.pop()?.give()
      expect((await listed).items.map(({ name }) => name)).toEqual(['t', 't1'])
    })

    verifies('http.026', async () => {
      let good = 0
      await using server = await startHttp(guarded(() => good, echo()))
      const wallet = new SlowWallet()
      const platform = movableClock()
      await using session = await connect(server.url, { client, authorization: wallet }, { platform })
      wallet.slow = 'header'
      const unsent = failure(session.callTool('x', {}, { idleTimeoutMs: 0 }))
      await until(() => wallet.asked.length === 1)
      platform.pass(120_001)
      expect(await unsent).toMatchObject({
        code: 'unauthorized',
        message: 'No credentials were to be had for this server within 120000 ms',
        details: { sent: false },
      })
      expect(server.log).not.toContain('tools/call')
      wallet.asked.pop()?.give()
      good = 1
      wallet.slow = 'challenge'
      const refused = failure(session.callTool('x', {}, { idleTimeoutMs: 0 }))
      await until(() => wallet.asked.length === 1)
      platform.pass(120_001)
      expect(await refused).toMatchObject({ code: 'unauthorized', details: { sent: false } })
      // The work goes on: who comes later finds what it brought.
      wallet.asked.pop()?.give()
      await until(() => wallet.token === 1)
      expect(textOf(await session.callTool('x'))).toBe('Bearer 1')
      expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(2)
    })

    verifies('http.027', async () => {
      let good = 0
      await using server = await startHttp(guarded(() => good, echo({ 'mcp-session-id': 's1' })))
      const wallet = new SlowWallet()
      await using session = await connect(server.url, { client, authorization: wallet })
      await until(() => server.log.includes('notifications/initialized') && server.log.includes('GET'))
      good = 1
      wallet.slow = 'challenge'
      server.seen.length = 0
      const controller = new AbortController()
      const { signal } = controller
      const aborted = failure(session.callTool('aborted', {}, { signal }))
      const other = session.callTool('other')
      await until(() => server.log.length === 2 && wallet.asked.length === 1)
      // Both wait for the same; nothing is lost if the second is refused only now.
      controller.abort()
      expect(await aborted).toMatchObject({ code: 'cancelled', details: { sent: false } })
      for (const { give } of wallet.asked.splice(0)) give()
      wallet.slow = 'nothing'
      expect(textOf(await other)).toBe('Bearer 1')
      // Neither the call again nor the news that it is cancelled: the server has never seen it.
      expect(server.log).toEqual(['tools/call', 'tools/call', 'tools/call'])
      expect(server.seen.filter(({ message }) => message?.params?.name === 'aborted')).toHaveLength(1)
    })

    verifies('http.028', async () => {
      await using server = await startHttp(echo())
      const wallet = new SlowWallet()
      const platform = movableClock()
      await using session = await connect(server.url, { client, authorization: wallet }, { platform })
      wallet.header = () => {
        // Whoever has the credentials keeps the whole program busy, so that no limit can be looked at.
        const aheadMs = platform.now()
        Object.assign(platform, { now: () => aheadMs + 20_000 })
        return Promise.resolve('Bearer 0')
      }
      expect(await failure(session.callTool('x', {}, { totalTimeoutMs: 10_000 }))).toMatchObject({
        code: 'timed-out',
        details: { limit: 'total', sent: false },
      })
      expect(server.log).not.toContain('tools/call')
    })

    verifies('http.039', async () => {
      let sessions = 0
      let good = 0
      let knows = true
      const handle = (): Handler => echo({ 'mcp-session-id': `s${sessions}` })
      await using server = await startHttp(
        guarded(
          () => good,
          (message, response, request) => {
            if (message.method === 'initialize') {
              sessions++
              knows = true
            } else if (!knows && message.method !== 'notifications/initialized') {
              good = 1 // the next request needs another token
              return response.writeHead(404).end()
            }
            return handle()(message, response, request)
          },
        ),
        (_message, response, { verb }) => response.writeHead(verb === 'DELETE' ? 204 : 405).end(),
      )
      const wallet = new SlowWallet()
      const platform = movableClock()
      await using session = await connect(server.url, { client, authorization: wallet }, { platform })
      await until(() => server.log.includes('notifications/initialized') && server.log.includes('GET'))
      knows = false
      wallet.slow = 'challenge'
      const limits = { totalTimeoutMs: 10_000, idleTimeoutMs: 0 }
      const call = session.callTool('x', {}, limits)
      await until(() => wallet.asked.length === 1)
      // Comes while the handshake waits already.
      const second = session.callTool('x', {}, limits)
      platform.pass(60_000)
      wallet.asked.pop()?.give()
      expect([textOf(await call), textOf(await second)]).toEqual(['Bearer 1', 'Bearer 1'])
      expect(sessions).toBe(2)
    })
  })
