// What is lost and comes back: sessions that a server has forgotten, processes that crashed, and clocks that wait for a person.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type ConnectionState, transition } from '../src/connection/state.ts'
import type { HostEvent } from '../src/index.ts'
import { SessionServer } from './session-server.ts'
import { callTool, hostOf, http, scripted, stateOf, statusOf, textIn } from './support.ts'

const statesIn = (events: readonly HostEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))

for (const forgotten of ['404', '400', '200'] as const)
  test(`a forgotten session (${forgotten}) is renewed once: the old one ended, the catalog listed, then each call goes on once`, async () => {
    await using server = await SessionServer.start()
    const { host, events } = await hostOf([http('web', server.url)])
    await using _ = host
    await host.whenSettled()
    await using binding = await host.bind()
    server.forget()
    server.forgotten = forgotten
    server.seen.length = 0
    events.length = 0
    const calls = await Promise.all(['a', 'b', 'c'].map(() => callTool(binding, 'web/echo')))
    expect(calls.map(textIn)).toEqual(['s2', 's2', 's2'])
    expect(server.ran).toEqual(['echo', 'echo', 'echo'])
    const order = server.seen.filter(({ session }) => session !== 's1').map(({ what }) => what)
    expect(order.slice(0, 3)).toEqual(['initialize', 'notifications/initialized', 'tools/list'])
    expect(order.slice(3)).toEqual(['tools/call', 'tools/call', 'tools/call'])
    expect(server.seen.filter(({ what }) => what === 'DELETE')).toEqual([{ what: 'DELETE', session: 's1' }])
    // Between the loss and the listing it was not ready, and said so.
    expect(statesIn(events)).toEqual(['starting', 'ready'])
    expect(statusOf(host, 'web').serverInfo).toEqual({ name: 'sessions', version: '2' })
  })

verifies('conn.112', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  server.forget()
  const calls = await Promise.all(Array.from({ length: 8 }, () => callTool(binding, 'web/echo')))
  expect(calls.map(textIn)).toEqual(Array(8).fill('s2'))
  expect([server.count('initialize'), server.ran.length]).toEqual([2, 8])
  // Forgotten again: once more, and once only.
  server.forget()
  expect(textIn(await callTool(binding, 'web/echo'))).toBe('s3')
  expect([server.count('initialize'), server.ran.length]).toEqual([3, 9])
})

test('a connection whose session is being made anew is not ready before its catalog is listed, and nobody cancels that', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  let listed: () => void = () => {}
  server.listed = new Promise((resolve) => {
    listed = resolve
  })
  server.forget()
  const starting = stateOf(host, 'web', 'starting')
  const call = callTool(binding, 'web/echo')
  expect((await starting).reason).toEqual({
    code: 'SERVER_NOT_READY',
    message: 'The server has forgotten the session; a new one is being made',
  })
  while (server.count('tools/list') < 2) await new Promise((resolve) => setImmediate(resolve))
  // A call that does not wait would have come by now: these round trips began later.
  for (let trip = 0; trip < 5; trip++) await fetch(server.url)
  expect([statusOf(host, 'web').state, server.ran]).toEqual(['starting', []])
  host.cancelStarts()
  listed()
  expect(textIn(await call)).toBe('s2')
  expect(statusOf(host, 'web').state).toBe('ready')
})

test('a call moves only into a new session that lists the same tool', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  // Other tools that come or go are none of its business.
  server.tools = ['echo', 'new']
  server.forget()
  expect(textIn(await callTool(binding, 'web/echo'))).toBe('s2')
  const changed = { kind: 'failed', error: { code: 'CATALOG_CHANGED', details: { sent: false } } }
  server.schema = { type: 'object', required: ['path'] }
  server.forget()
  expect(await callTool(binding, 'web/echo')).toMatchObject(changed)
  await using fresh = await host.bind()
  server.tools = ['new']
  server.forget()
  expect(await callTool(fresh, 'web/echo')).toMatchObject(changed)
  expect(server.ran).toEqual(['echo'])
  await using last = await host.bind()
  expect(textIn(await callTool(last, 'web/new'))).toBe('s4')
})

test('a session that cannot be made anew is told to the call and to the status, and the next need starts it again', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  server.forget()
  server.refusesWith = 403
  const failed = stateOf(host, 'web', 'needs-auth')
  expect(await callTool(binding, 'web/echo')).toMatchObject({ kind: 'failed' })
  expect((await failed).reason?.message).toContain('HTTP 403')
  server.refusesWith = undefined
  expect((await host.reconnect('web')).state).toBe('ready')
  await using fresh = await host.bind()
  expect(textIn(await callTool(fresh, 'web/echo'))).toBe('s2')
  expect(server.ran).toEqual(['echo'])
})

test('a server that lists nothing any more in its new session is not called ready', async () => {
  await using server = await SessionServer.start()
  const { host } = await hostOf([http('web', server.url, { startupTimeoutMs: 600 })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  server.listed = new Promise(() => {})
  server.forget()
  expect(await callTool(binding, 'web/echo')).toMatchObject({ kind: 'failed', error: { code: 'CONNECTION_LOST' } })
  expect(statusOf(host, 'web').state).toBe('failed')
  expect(server.ran).toEqual([])
})

test('losing a session is a state of its own', () => {
  const ready: ConnectionState = { kind: 'ready', sinceAtMs: 1, failuresBefore: 2 }
  const renewing = transition(ready, { kind: 'session-lost', atMs: 5 })
  expect(renewing).toMatchObject({ state: { kind: 'starting', sinceAtMs: 5, isRenewal: true }, effects: ['report'] })
  const { state } = renewing
  const reason = { code: 'CONNECTION_LOST', message: 'no' } as const
  expect(transition(state, { kind: 'opened', atMs: 9 })).toEqual({
    state: { kind: 'ready', sinceAtMs: 9, failuresBefore: 2 },
    effects: ['report'],
  })
  expect(transition(state, { kind: 'cancel', atMs: 9, reason }).state).toBe(state)
  expect(transition(state, { kind: 'needed', atMs: 9 }).state).toBe(state)
  expect(transition(state, { kind: 'lost', atMs: 9, as: 'failed', reason })).toMatchObject({
    state: { kind: 'failed', failures: 3 },
    effects: ['end-attempt', 'report'],
  })
  expect(transition(state, { kind: 'release', atMs: 9 }).effects).toEqual(['end-attempt'])
  // Only a ready connection has a session to lose, and an ordinary start is not lost.
  const starting: ConnectionState = { kind: 'starting', sinceAtMs: 1, reason, failuresBefore: 0 }
  expect(transition(starting, { kind: 'session-lost', atMs: 5 }).state).toBe(starting)
  expect(transition(starting, { kind: 'lost', atMs: 5, as: 'failed', reason }).state).toBe(starting)
  expect(transition(starting, { kind: 'cancel', atMs: 5, reason }).state.kind).toBe('cancelled')
})

verifies('conn.106', async () => {
  const { host } = await hostOf([scripted('ready'), scripted('slow', { initialize: 'silent' })])
  await using _ = host
  await stateOf(host, 'ready', 'ready')
  await using binding = await host.bind({ grace: 'none' })
  host.cancelStarts()
  expect(host.statuses.map(({ state }) => state)).toEqual(['ready', 'cancelled'])
  expect(statusOf(host, 'slow').reason).toMatchObject({ code: 'CANCELLED' })
  expect(textIn(await callTool(binding, 'ready/echo', { text: 'on' }))).toBe('on')
})

test('a crashed process is started again when it is next needed, after a pause that grows with each crash', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  const failed = stateOf(host, 's', 'failed')
  expect((await callTool(old, 's/crash')).kind).toBe('unknown')
  const { nextRetryAtMs = 0, sinceAtMs } = await failed
  expect(nextRetryAtMs - sinceAtMs).toBe(1_000)
  // Looking starts nothing; needing it does, once its time has come.
  expect(statusOf(host, 's').state).toBe('failed')
  const ready = stateOf(host, 's', 'ready')
  await eventually(async () => {
    await using _binding = await host.bind({ grace: 'none' })
    return statusOf(host, 's').state !== 'failed'
  })
  await ready
  await using fresh = await host.bind()
  expect(textIn(await callTool(fresh, 's/echo', { text: 'back' }))).toBe('back')
  expect(await callTool(old, 's/echo')).toMatchObject({ kind: 'failed' })
})

verifies('conn.113', async () => {
  for (const era of ['legacy', 'modern'] as const)
    for (const limits of [{ toolTimeoutMs: 200 }, { toolTotalTimeoutMs: 200 }]) {
      let answer: () => void = () => {}
      const asked = new Promise<void>((resolve) => {
        answer = resolve
      })
      const { host } = await hostOf([scripted('s', { era }, limits)], {
        handlers: {
          elicit: async () => {
            answer()
            // A person who takes longer than the limit.
            await new Promise((resolve) => setTimeout(resolve, 600))
            return { action: 'accept', content: { name: 'Ada' } }
          },
        },
      })
      await using _ = host
      await host.whenSettled()
      await using binding = await host.bind()
      const outcome = callTool(binding, 's/elicit')
      await asked
      expect(textIn(await outcome), `${era} ${JSON.stringify(limits)}`).toContain('Ada')
      // The limits themselves hold as before.
      expect(await callTool(binding, 's/silent')).toMatchObject({ kind: 'failed' })
    }
})

/** Asks again until it is so; bounded by the test's own limit. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}
