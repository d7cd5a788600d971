// Calls by name, without a binding: who is asked, in which order what is refused, and who is started.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { SessionServer } from './session-server.ts'
import { hostOf, http, scripted, stateOf, statusOf, textIn } from './support.ts'

verifies('conn.096', async () => {
  const { host } = await hostOf([scripted('pending', { initialize: 'silent' }), scripted('ready')])
  await using _ = host
  await stateOf(host, 'ready', 'ready')
  const beganAtMs = performance.now()
  expect(await host.callTool({ server: 'pending', tool: 'echo' })).toMatchObject({
    kind: 'failed',
    error: {
      code: 'SERVER_NOT_READY',
      message: 'Server "pending" is not connected (starting): Starting',
      details: { server: 'pending', state: 'starting' },
    },
  })
  expect(performance.now() - beganAtMs).toBeLessThan(50)
  const reached = await host.callTool({ server: 'ready', tool: 'echo', args: { text: 'here' } })
  expect(textIn(reached)).toBe('here')
  expect(statusOf(host, 'pending').state).toBe('starting')
})

verifies(['conn.006', 'conn.007'], async () => {
  await using server = await SessionServer.start()
  const { host, events } = await hostOf([http('web', server.url)], { start: [] })
  await using _ = host
  expect(statusOf(host, 'web').state).toBe('dormant')
  expect(await host.callTool({ server: 'web', tool: 'echo' })).toMatchObject({
    kind: 'failed',
    error: { code: 'SERVER_NOT_READY', message: expect.stringMatching(/^Server "web" is not connected \(dormant\)/) },
  })
  expect([statusOf(host, 'web').state, server.seen]).toEqual(['dormant', []])
  events.length = 0
  expect(textIn(await host.callTool({ server: 'web', tool: 'echo', wait: 'ready' }))).toBe('s1')
  expect(events.flatMap((event) => (event.kind === 'server.state-changed' ? [event.status.state] : []))).toEqual([
    'starting',
    'ready',
  ])
})

verifies('conn.097', async () => {
  const { host } = await hostOf([scripted('s', {}, { tools: { deny: ['echo'], allow: ['echo', 'seen'] } })], {
    start: [],
  })
  await using _ = host
  for (const tool of ['echo', 'fail'])
    for (const wait of ['no', 'ready'] as const)
      expect(await host.callTool({ server: 's', tool, wait })).toMatchObject({
        kind: 'failed',
        error: { code: 'TOOL_DISABLED', message: expect.stringContaining(`s/${tool}`) },
      })
  // Nobody was started for it.
  expect(statusOf(host, 's').state).toBe('dormant')
})

verifies('conn.098', async () => {
  const { host } = await hostOf([scripted('s', { initialize: 'silent' }, { tools: { deny: ['no'] } })])
  await using _ = host
  const beganAtMs = performance.now()
  expect(await host.callTool({ server: 's', tool: 'echo', environment: 'box', wait: 'ready' })).toMatchObject({
    kind: 'failed',
    error: {
      code: 'ENVIRONMENT_MISMATCH',
      message: 'Server "s" runs in the environment "local", and the call is for "box"',
      details: { server: 's', environment: 'local', expected: 'box' },
    },
  })
  expect(performance.now() - beganAtMs).toBeLessThan(100)
  expect(await host.callTool({ server: 's', tool: 'echo', environment: 'local' })).toMatchObject({
    error: { code: 'SERVER_NOT_READY', message: expect.stringContaining('is not connected') },
  })
  // In this order: the server, its environment, the filter, whether it is there.
  const codeOf = async (call: Parameters<typeof host.callTool>[0]): Promise<unknown> => {
    const outcome = await host.callTool(call)
    return 'error' in outcome ? outcome.error.code : outcome.kind
  }
  expect(await codeOf({ server: 'x', tool: 'no', environment: 'box' })).toBe('SERVER_UNKNOWN')
  expect(await codeOf({ server: 's', tool: 'no', environment: 'box' })).toBe('ENVIRONMENT_MISMATCH')
  expect(await codeOf({ server: 's', tool: 'no', environment: 'local' })).toBe('TOOL_DISABLED')
})

test('a call that waits says why the server does not start, within the limit of the caller', async () => {
  const { host } = await hostOf(
    [scripted('dies', { exitAtStart: { code: 3 } }), scripted('slow', { initialize: 'silent' })],
    { start: [] },
  )
  await using _ = host
  expect(await host.callTool({ server: 'dies', tool: 'echo', wait: 'ready' })).toMatchObject({
    kind: 'failed',
    error: { code: 'SERVER_EXITED', message: expect.stringContaining('ended with code 3') },
  })
  expect(await host.callTool({ server: 'slow', tool: 'echo', wait: 'ready', timeoutMs: 150 })).toMatchObject({
    error: { code: 'CALL_TOTAL_TIMEOUT', details: { sent: false } },
  })
  const signal = AbortSignal.timeout(30)
  expect(await host.callTool({ server: 'slow', tool: 'echo', wait: 'ready', signal })).toMatchObject({
    kind: 'cancelled',
  })
  // Whoever stops waiting does not stop the start.
  expect(statusOf(host, 'slow').state).toBe('starting')
})

test('a tool that is hidden, or not listed at all, can be called by name', async () => {
  const hidden = { name: 'hidden', _meta: { ui: { visibility: ['app'] } } }
  const { host } = await hostOf([scripted('s', { tools: [hidden] })])
  await using _ = host
  await host.whenSettled()
  expect((await host.callTool({ server: 's', tool: 'hidden', args: { text: 'x' } })).kind).toBe('ok')
  // The server is the one to say that it does not know it.
  expect(await host.callTool({ server: 's', tool: 'unlisted' })).toMatchObject({
    kind: 'failed',
    error: { code: 'SERVER_ERROR' },
  })
})
