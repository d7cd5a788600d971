// How calls go and how they end, on real processes and over HTTP.
import type { JsonObject } from '@convoke/host'
import { everythingStdio, startScriptedHttp, startScriptedHttpProcess, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { callTool, eventOf, hostOf, http, scripted, seenBy, statusOf, stdio, textIn, toolOf } from './support.ts'

verifies('connection.030', async () => {
  const { host } = await hostOf([
    scripted('s', {
      tools: [
        {
          name: 'structured',
          does: { kind: 'content', content: [{ type: 'text', text: 'x' }], structuredContent: { sum: 3 } },
        },
        { name: 'image', does: { kind: 'content', content: [{ type: 'image', data: 'AAEC', mimeType: 'image/png' }] } },
        {
          name: 'link',
          does: {
            kind: 'content',
            content: [{ type: 'resource_link', uri: 'file:///a b', name: 'a', 'x-own': { keep: [1] } }],
          },
        },
        { name: 'hidden', does: { kind: 'text', text: 'keep \u200b\u202e these: they may be the content of a file' } },
        { name: 'fail', does: { kind: 'tool-error', text: 'no' } },
        { name: 'refuse', does: { kind: 'rpc-error', code: -32050, message: 'nope', data: { why: 1 } } },
        { name: 'echo' },
      ],
    }),
    stdio('everything', everythingStdio()),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(await callTool(binding, 's/structured')).toEqual({
    kind: 'ok',
    result: { content: [{ type: 'text', text: 'x' }], structuredContent: { sum: 3 } },
  })
  expect(await callTool(binding, 's/image')).toMatchObject({
    result: { content: [{ type: 'image', data: 'AAEC', mimeType: 'image/png' }] },
  })
  expect(await callTool(binding, 's/link')).toMatchObject({
    result: { content: [{ type: 'resource_link', uri: 'file:///a b', 'x-own': { keep: [1] } }] },
  })
  expect(textIn(await callTool(binding, 's/hidden'))).toBe('keep \u200b\u202e these: they may be the content of a file')
  expect(textIn(await callTool(binding, 's/echo', { text: 'ünïcode "quoted"\n' }))).toBe('ünïcode "quoted"\n')
  expect(await callTool(binding, 's/fail')).toEqual({
    kind: 'tool-error',
    result: { content: [{ type: 'text', text: 'no' }], isError: true },
  })
  expect(await callTool(binding, 's/refuse')).toMatchObject({
    kind: 'failed',
    error: {
      code: 'SERVER_ERROR',
      message: 'Server "s": nope',
      details: { rpc: { code: -32050, message: 'nope', data: { why: 1 } } },
    },
  })
  expect(await callTool(binding, 'everything/get-sum', { a: 2, b: 40 })).toMatchObject({ kind: 'ok' })
  expect(await callTool(binding, 'everything/get-tiny-image')).toMatchObject({
    kind: 'ok',
    result: { content: [{ type: 'text' }, { type: 'image', mimeType: 'image/png' }, { type: 'text' }] },
  })
})

verifies('connection.031', async () => {
  const limits = { toolTimeoutMs: 400, toolTotalTimeoutMs: 1_500 }
  const { host } = await hostOf([scripted('s', {}, limits)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const told: JsonObject[] = []
  // Eight times 150 ms: longer than the idle limit, shorter than the total.
  const outcome = await callTool(
    binding,
    's/progress',
    { count: 8, everyMs: 150 },
    { onProgress: (one) => told.push(one) },
  )
  expect(textIn(outcome)).toBe('8 steps')
  expect(told.map(({ progress, total }) => [progress, total])).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((step) => [step, 8]),
  )
  // Asked for also when nobody here listens.
  expect((await seenBy(binding, 's')).meta?.['progressToken']).toBeDefined()
  expect(textIn(await callTool(binding, 's/progress', { count: 8, everyMs: 150 }))).toBe('8 steps')
  expect(await callTool(binding, 's/silent')).toMatchObject({
    kind: 'failed',
    error: {
      code: 'CALL_TIMEOUT',
      message: 's/silent neither answered nor reported progress for 400 ms (toolTimeoutMs) and was cancelled',
    },
  })
  expect(await callTool(binding, 's/progress', { count: 100, everyMs: 100 })).toMatchObject({
    kind: 'failed',
    error: { code: 'CALL_TOTAL_TIMEOUT', message: expect.stringContaining('1500 ms in all (toolTotalTimeoutMs)') },
  })
  // A caller's own limit is for the whole call.
  expect(await callTool(binding, 's/progress', { count: 100, everyMs: 50 }, { timeoutMs: 300 })).toMatchObject({
    kind: 'failed',
    error: { code: 'CALL_TOTAL_TIMEOUT', message: expect.stringContaining('300 ms in all') },
  })
  expect(textIn(await callTool(binding, 's/echo', { text: 'alive' }))).toBe('alive')
})

test('a tool can have limits of its own', async () => {
  const tools = { overrides: { silent: { toolTimeoutMs: 150 } } }
  const { host } = await hostOf([scripted('s', {}, { tools })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(await callTool(binding, 's/silent')).toMatchObject({ error: { code: 'CALL_TIMEOUT' } })
})

verifies('connection.032', async () => {
  const { host } = await hostOf([scripted('s'), scripted('modern', { era: 'modern' })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  for (const server of ['s', 'modern']) {
    const abort = new AbortController()
    let cancelledAtMs = 0
    const running = callTool(binding, `${server}/silent`, {}, { signal: abort.signal })
    await seenBy(binding, server)
    cancelledAtMs = performance.now()
    abort.abort()
    expect(await running).toMatchObject({ kind: 'cancelled', error: { code: 'CANCELLED' } })
    expect(performance.now() - cancelledAtMs).toBeLessThan(500)
    const seen = await seenBy(binding, server)
    expect(seen.cancelled).toHaveLength(1)
    expect(seen.pid).toBe(statusOf(host, server).pid)
    expect(await callTool(binding, `${server}/echo`, {}, { signal: AbortSignal.abort() })).toMatchObject({
      kind: 'cancelled',
    })
    expect((await seenBy(binding, server)).calls['echo']).toBeUndefined()
  }
})

verifies('connection.033', async () => {
  await using dropping = await startScriptedHttp()
  const { host } = await hostOf([scripted('s'), http('web', dropping.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(await callTool(binding, 's/crash')).toMatchObject({
    kind: 'unknown',
    error: {
      code: 'OUTCOME_UNKNOWN',
      message: 'The connection was lost while s/crash was running; whether it ran to its end is not known',
    },
  })
  expect(await callTool(binding, 'web/drop')).toMatchObject({ kind: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } })
  expect((await seenBy(binding, 'web')).calls['drop']).toBe(1)
  // Nothing can have been sent to what is known to be gone.
  expect(await callTool(binding, 's/echo')).toMatchObject({ kind: 'failed', error: { code: 'CONNECTION_LOST' } })
})

verifies('connection.034', async () => {
  await using server = await startScriptedHttp()
  const { host } = await hostOf([
    http('trusted', server.url, { tools: { overrides: { drop: { idempotent: true } } } }),
    // A hint of the server's own lowers no caution.
    scripted('claims', {
      tools: [{ name: 'crash', annotations: { idempotentHint: true }, does: { kind: 'exit', code: 1, onCall: 1 } }],
    }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect((await callTool(binding, 'trusted/drop')).kind).toBe('unknown')
  expect((await seenBy(binding, 'trusted')).calls['drop']).toBe(2)
  expect((await callTool(binding, 'claims/crash')).kind).toBe('unknown')
})

verifies('connection.035', async () => {
  const { host } = await hostOf([scripted('s', {}, { tools: { deny: ['fail'] } }), scripted('free')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(binding.resolveTool('s/fail').kind).toBe('unknown-tool')
  const smuggled = { ...toolOf(binding, 'free/fail'), server: 's' }
  expect(await binding.call(smuggled, {})).toMatchObject({ kind: 'failed', error: { code: 'TOOL_DISABLED' } })
  await expect(binding.callRaw(smuggled, {})).rejects.toMatchObject({ code: 'TOOL_DISABLED' })
  expect((await seenBy(binding, 's')).calls).toEqual({ seen: 1 })
  expect((statusOf(host, 's').toolCount ?? 0) + 1).toBe(statusOf(host, 'free').toolCount)
})

verifies('connection.036', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  for (const wrong of [[], null, 'text', 7])
    expect(await binding.call(toolOf(binding, 's/echo'), wrong as unknown as JsonObject)).toMatchObject({
      kind: 'failed',
      error: { code: 'ARGUMENTS_INVALID', message: 'The arguments of s/echo have to be a JSON object' },
    })
  await expect(binding.callRaw(toolOf(binding, 's/echo'), { arguments: [] })).rejects.toMatchObject({
    code: 'ARGUMENTS_INVALID',
  })
  expect((await seenBy(binding, 's')).calls['echo']).toBeUndefined()
})

verifies('connection.037', async () => {
  const { host } = await hostOf([scripted('asks'), scripted('never')], {
    handlers: { roots: async () => ({ roots: [] }) },
  })
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const order = async (server: string): Promise<string[]> => {
    const ended: string[] = []
    const call = async (ms: number): Promise<void> => {
      await callTool(binding, `${server}/late`, { ms, text: String(ms) })
      ended.push(String(ms))
    }
    await Promise.all([call(300), call(150), call(10)])
    return ended
  }
  expect(textIn(await callTool(binding, 'asks/roots'))).toBe('{"roots":[]}')
  expect(await order('asks')).toEqual(['300', '150', '10'])
  expect(await order('never')).toEqual(['10', '150', '300'])
  // Waiting counts: a call whose turn does not come in time was never sent.
  const slow = callTool(binding, 'asks/late', { ms: 400 })
  expect(await callTool(binding, 'asks/echo', { text: 'x' }, { timeoutMs: 100 })).toMatchObject({
    kind: 'failed',
    error: { code: 'CALL_TOTAL_TIMEOUT' },
  })
  expect((await slow).kind).toBe('ok')
  expect((await seenBy(binding, 'asks')).calls['echo']).toBeUndefined()
})

verifies('connection.038', async () => {
  const { host } = await hostOf([scripted('s', {}, { messageBytesMax: 100_000 })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const [big, small] = await Promise.all([
    callTool(binding, 's/big', { bytes: 200_000 }),
    callTool(binding, 's/late', { ms: 50, text: 'fine' }),
  ])
  expect(big).toMatchObject({ kind: 'failed', error: { code: 'MESSAGE_TOO_LARGE' } })
  expect(textIn(small)).toBe('fine')
  expect(textIn(await callTool(binding, 's/big', { bytes: 50_000 }))).toHaveLength(50_000)
})

verifies('connection.039', async () => {
  const bare = (await hostOf([scripted('legacy'), scripted('modern', { era: 'modern' })])).host
  await using _bare = bare
  const heard: string[] = []
  const able = (
    await hostOf([scripted('legacy'), scripted('modern', { era: 'modern' })], {
      handlers: {
        elicit: async (params, { call }) => {
          heard.push(`${String(params['message'])} for ${call?.method}`)
          return { action: 'accept', content: { name: 'Ada' } }
        },
        roots: async () => {
          throw new Error('the path /home/secret cannot be read')
        },
      },
    })
  ).host
  await using _able = able
  await Promise.all([bare.whenSettled(), able.whenSettled()])
  await using without = await bare.bind()
  await using withHandlers = await able.bind()
  expect((await seenBy(without, 'legacy')).lastInitialize?.capabilities).toEqual({})
  expect((await seenBy(withHandlers, 'legacy')).lastInitialize?.capabilities).toEqual({
    elicitation: { form: {}, url: {} },
    roots: {},
  })
  for (const tool of ['legacy/sample', 'legacy/roots']) expect(textIn(await callTool(without, tool))).toMatch(/^-32601/)
  // A question that comes although nobody said that it could is not answered by the host itself: it is parked.
  const asked = eventOf(bare, 'question.asked')
  const parked = callTool(without, 'legacy/elicit')
  bare.answer((await asked).question.id, { action: 'decline' })
  expect(textIn(await parked)).toContain('{"action":"decline"}')
  for (const server of ['legacy', 'modern'])
    expect(textIn(await callTool(withHandlers, `${server}/elicit`))).toContain(
      '{"action":"accept","content":{"name":"Ada"}}',
    )
  expect(heard).toEqual(['What is your name? for tools/call', 'What is your name? for tools/call'])
  // What went wrong here is not the server's to read.
  expect(textIn(await callTool(withHandlers, 'legacy/roots'))).toBe('-32603 The client could not answer')
})

verifies('connection.040', async () => {
  const { host } = await hostOf([scripted('s')])
  await using _ = host
  await host.whenSettled()
  const heard: string[] = []
  {
    await using own = await host.openDedicated('s', {
      capabilities: { sampling: {} },
      clientInfo: { name: 'downstream', version: '9' },
      handlers: {
        'sampling/createMessage': async () => ({
          role: 'assistant',
          model: 'm',
          content: { type: 'text', text: 'hi' },
        }),
      },
      onNotification: (method) => heard.push(method),
    })
    expect([own.name, own.era]).toEqual(['s', 'legacy'])
    const call = (name: string, args: JsonObject = {}): Promise<JsonObject> =>
      own.request('tools/call', { name, arguments: args })
    const seen = JSON.parse(String(((await call('seen'))['content'] as JsonObject[])[0]?.['text'])) as JsonObject
    expect(seen['lastInitialize']).toMatchObject({
      capabilities: { sampling: {} },
      clientInfo: { name: 'downstream', version: '9' },
    })
    expect(seen['pid']).not.toBe(statusOf(host, 's').pid)
    expect(JSON.stringify(await call('sample'))).toContain('\\"text\\":\\"hi\\"')
    await call('change')
    expect(heard).toContain('notifications/tools/list_changed')
    const raw = await own.requestRaw('tools/call', { name: 'echo', arguments: { text: 'bytes' } })
    expect(raw.body.toString()).toContain('bytes')
  }
  // A port that nobody closed ends with the host.
  await host.openDedicated('s', { capabilities: {} })
  await expect(host.openDedicated('t', { capabilities: {} })).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' })
  await expect(host.openDedicated('s', { capabilities: {}, signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'CANCELLED',
  })
})

test('bytes pass through, with the limits of the definition and the keys of the host', async () => {
  const { host } = await hostOf([scripted('s', {}, { toolTimeoutMs: 300 })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const raw = await binding.callRaw(toolOf(binding, 's/echo'), { arguments: { text: 'as bytes' } })
  expect([raw.kind, JSON.parse(raw.body.toString())]).toEqual([
    'result',
    { content: [{ type: 'text', text: 'as bytes' }] },
  ])
  const refused = await binding.callRaw(toolOf(binding, 's/refuse'), {})
  expect([refused.kind, JSON.parse(refused.body.toString())]).toMatchObject(['error', { code: -32050 }])
  await expect(binding.callRaw(toolOf(binding, 's/silent'), { arguments: {} })).rejects.toMatchObject({
    code: 'CALL_TIMEOUT',
  })
})

verifies('security.134', async () => {
  const { host } = await hostOf([
    scripted('s', {
      tools: [
        { name: 'seen', does: { kind: 'seen' }, _meta: { 'convoke/app': { evil: 1 }, keep: 1 } },
        {
          name: 'claims',
          does: { kind: 'content', content: [], _meta: { 'convoke/connector': 'x', own: 2 } } as never,
        },
      ],
    }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const seen = await callTool(
    binding,
    's/seen',
    {},
    { meta: { 'convoke/entitlement': 'forged', progressToken: 'mine', own: 1 } },
  )
  const { meta } = JSON.parse(textIn(seen)) as { meta: JsonObject }
  expect(meta).toMatchObject({ own: 1 })
  expect(meta).not.toHaveProperty('convoke/entitlement')
  expect(meta['progressToken']).not.toBe('mine')
  expect(toolOf(binding, 's/seen').definition['_meta']).toEqual({ keep: 1 })
  expect(toolOf(binding, 's/seen').meta).toEqual({ keep: 1 })
  expect(await callTool(binding, 's/claims')).toMatchObject({ result: { _meta: { own: 2 } } })
  expect(JSON.stringify(await callTool(binding, 's/claims'))).not.toContain('convoke/connector')
})

test('a server that was killed during a call over HTTP leaves the outcome unknown', async () => {
  await using server = await startScriptedHttpProcess()
  const { host } = await hostOf([http('web', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const running = callTool(binding, 'web/silent')
  await seenBy(binding, 'web')
  process.kill(server.pid, 'SIGKILL')
  expect(await running).toMatchObject({ kind: 'unknown', error: { code: 'OUTCOME_UNKNOWN', details: { sent: true } } })
})
