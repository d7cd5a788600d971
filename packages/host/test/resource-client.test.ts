// Resources of single servers: through a binding, which waits for the server that is named, and through the client that outlives generations.
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import type { JsonObject } from '../src/index.ts'
import { startRawHttp } from './raw-http.ts'
import { hostOf, http, scripted, stateOf, statusOf } from './support.ts'

/** A server with three resources on two pages, one item of them malformed. */
const library = (): ReturnType<typeof startRawHttp> =>
  startRawHttp(
    {
      'tools/list': () => ({ result: { tools: [] } }),
      'resources/list': ({ params }) => {
        const cursor = (params as { cursor?: string } | undefined)?.cursor
        if (cursor === 'bad') return { error: { code: -32602, message: 'bad cursor' } }
        return cursor === undefined
          ? {
              result: { resources: [{ uri: 'doc:a', name: 'a', _meta: { own: 1 } }, { name: 'lost' }], nextCursor: '' },
            }
          : { result: { resources: [{ uri: 'doc:b', name: 'b' }] } }
      },
      'resources/read': ({ params }) => {
        const { uri } = params as { uri: string }
        return uri === 'doc:none'
          ? { error: { code: -32002, message: 'no such document' } }
          : { result: { contents: [{ uri, text: 'read' }] } }
      },
    },
    { tools: {}, resources: {} },
  )

test('one page of one server, and one resource, starting the server if it has to', async () => {
  await using raw = await library()
  const { host } = await hostOf([http('docs', raw.url), scripted('off', {}, { enabled: false })], { start: [] })
  await using _ = host
  const { resources } = host
  // Looking starts nothing.
  expect([resources.hasServer('docs'), resources.hasServer('off'), resources.hasServer('nope')]).toEqual([
    true,
    true,
    false,
  ])
  expect(resources.connectionKey('docs')).toEqual({ server: 'docs' })
  expect(resources.connectionKey('nope')).toBeUndefined()
  expect(statusOf(host, 'docs').state).toBe('dormant')
  expect(await resources.listResources('docs')).toEqual({
    resources: [{ uri: 'doc:a', name: 'a', _meta: { own: 1 } }],
    malformedCount: 1,
    nextCursor: '',
  })
  // An empty cursor is a cursor like any other.
  expect(await resources.listResources('docs', { cursor: '' })).toEqual({
    resources: [{ uri: 'doc:b', name: 'b' }],
    malformedCount: 0,
  })
  expect(await resources.readResource('docs', 'doc:a')).toEqual({ contents: [{ uri: 'doc:a', text: 'read' }] })
  const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => undefined,
      ({ code, message }: { code: string; message: string }) => [code, message],
    )
  expect(await failureOf(resources.readResource('docs', 'doc:none'))).toEqual([
    'SERVER_ERROR',
    'resources/read failed for "docs" (doc:none): Server "docs": no such document',
  ])
  expect(await failureOf(resources.listResources('docs', { cursor: 'bad' }))).toEqual([
    'SERVER_ERROR',
    'resources/list failed for "docs": Server "docs": bad cursor',
  ])
  expect(await failureOf(resources.readResource('nope', 'doc:a'))).toEqual([
    'SERVER_UNKNOWN',
    'There is no server "nope"',
  ])
  expect(await failureOf(resources.readResource('off', 'doc:a'))).toEqual([
    'SERVER_DISABLED',
    expect.stringMatching(/^resources\/read failed for "off"/),
  ])
  expect(await failureOf(resources.readResource('docs', `doc:${'x'.repeat(8_192)}`))).toEqual([
    'ARGUMENTS_INVALID',
    expect.stringContaining('8192'),
  ])
  expect(await failureOf(resources.listResources('docs', { cursor: 'x'.repeat(65_537) }))).toEqual([
    'ARGUMENTS_INVALID',
    expect.stringContaining('65536'),
  ])
})

test('the client stays valid over generations, and its keys say when something else answers', async () => {
  await using raw = await library()
  const { host } = await hostOf([http('docs', raw.url), scripted('s')])
  await using _ = host
  await host.whenSettled()
  const { resources } = host
  const [docs, s] = [resources.connectionKey('docs'), resources.connectionKey('s')]
  expect(docs).not.toBe(s)
  // Policy is none of the connection's business: it is the same one.
  await host.configure([http('docs', raw.url, { tools: { deny: ['x'] } }), scripted('s')])
  expect(resources.connectionKey('docs')).toBe(docs)
  expect(resources.authScopeKey('docs')).toBe(resources.authScopeKey('docs'))
  await host.reconnect('docs')
  expect(resources.connectionKey('docs')).not.toBe(docs)
  expect(resources.connectionKey('s')).toBe(s)
  expect(await resources.readResource('docs', 'doc:a')).toMatchObject({ contents: [{ text: 'read' }] })
  await host.configure([scripted('s')])
  expect([resources.hasServer('docs'), resources.connectionKey('docs')]).toEqual([false, undefined])
})

test('a listing or reading of one server waits for it, one of all servers does not', async () => {
  await using slow = await startScriptedHttp({ initializeDelayMs: 700, capabilities: { tools: {}, resources: {} } })
  await using raw = await library()
  const { host } = await hostOf([http('docs', raw.url), http('slow', slow.url)])
  await using _ = host
  await stateOf(host, 'docs', 'ready')
  await using binding = await host.bind({ grace: 'none' })
  const beganAtMs = performance.now()
  const all = await binding.resources()
  expect([all.items.map(({ uri }) => uri), statusOf(host, 'slow').state]).toEqual([['doc:a', 'doc:b'], 'starting'])
  expect(performance.now() - beganAtMs).toBeLessThan(500)
  const one = binding.resources({ servers: ['slow'] })
  const read = binding.readResource('doc:x', { server: 'slow' }).then(
    () => undefined,
    ({ message }: Error) => message,
  )
  const templates = binding.resourceTemplates({ servers: ['slow'] })
  expect((await one).failures).toEqual([])
  expect((await templates).failures).toEqual([])
  expect(statusOf(host, 'slow').state).toBe('ready')
  // It was asked, and said no.
  expect(await read).toMatch(/^resources\/read failed for "slow" \(doc:x\): /)
  // Who is named but not there is an error in the words of the listing; who does not exist, too.
  await expect(binding.resources({ servers: ['nope'] })).rejects.toMatchObject({ code: 'SERVER_NOT_READY' })
  const signal = AbortSignal.abort()
  await expect(binding.readResource('doc:a', { server: 'slow', signal })).rejects.toMatchObject({ code: 'CANCELLED' })
})

verifies('conn.024', async () => {
  await using locked = await startScriptedHttp({ token: 'secret-token' })
  const { host } = await hostOf(
    [
      scripted('ready'),
      scripted('starting', { initialize: 'silent' }),
      scripted('cancelled', { initialize: 'silent' }),
      scripted('failed', { exitAtStart: { code: 3 } }),
      scripted('disabled', {}, { enabled: false }),
      scripted('dormant'),
      http('needs-auth', locked.url),
      http('needs-input', 'http://127.0.0.1:9/mcp', {}, { bearerTokenEnvVar: 'CONVOKE_TEST_ABSENT' }),
    ],
    { start: ['ready', 'starting', 'cancelled', 'failed', 'needs-auth', 'needs-input'] },
  )
  await using _ = host
  const settled = ['ready', 'failed', 'needs-auth', 'needs-input'] as const
  await Promise.all(settled.map((state) => stateOf(host, state, state)))
  const beganAtMs = performance.now()
  const now = (): JsonObject => Object.fromEntries(host.statuses.map(({ name, state }) => [name, state]))
  const before = now()
  expect(performance.now() - beganAtMs).toBeLessThan(100)
  expect(before).toEqual({
    ready: 'ready',
    starting: 'starting',
    cancelled: 'starting',
    failed: 'failed',
    disabled: 'disabled',
    dormant: 'dormant',
    'needs-auth': 'needs-auth',
    'needs-input': 'needs-input',
  })
  host.cancelStarts()
  expect(now()).toEqual({ ...before, starting: 'cancelled', cancelled: 'cancelled' })
  // Each says why and since when; a failed one says when it is tried again.
  for (const { name, state, reason, sinceAtMs, nextRetryAtMs } of host.statuses) {
    expect(sinceAtMs, name).toBeGreaterThan(0)
    expect(state === 'ready' ? reason : reason?.message, name).toEqual(
      state === 'ready' ? undefined : expect.any(String),
    )
    expect(nextRetryAtMs === undefined, name).toBe(state !== 'failed')
  }
})
