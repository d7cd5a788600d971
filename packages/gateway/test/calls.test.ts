// What happens around a call: progress, cancellation, log messages, errors, results.
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { openSession, rpc, Stream } from '../../wire/test/server-fixture.ts'
import { connect, ERAS, open, seenBy, textOf } from './fixture.ts'

type Json = Record<string, unknown>

/** One server of each era, reached over each transport. */
async function fourServers(
  script: object = {},
): Promise<{ servers: Record<string, ReturnType<typeof scriptedStdio> | { url: string }> } & AsyncDisposable> {
  const [oldHttp, newHttp] = [
    await startScriptedHttp({ answers: 'sse', ...script }),
    await startScriptedHttp({ era: 'modern', answers: 'sse', ...script }),
  ]
  return {
    servers: {
      oldpipe: scriptedStdio(script),
      newpipe: scriptedStdio({ era: 'modern', ...script }),
      oldhttp: { url: oldHttp.url },
      newhttp: { url: newHttp.url },
    },
    async [Symbol.asyncDispose]() {
      await oldHttp.close()
      await newHttp.close()
    },
  }
}
const SERVERS = ['oldpipe', 'newpipe', 'oldhttp', 'newhttp'] as const

verifies('gateway.009', async () => {
  await using four = await fourServers()
  await using opened = await open(four)
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    for (const server of SERVERS) {
      const seen: Json[] = []
      const result = await client.callTool(
        `${server}__progress`,
        { count: 3, everyMs: 5 },
        { onProgress: (progress) => void seen.push(progress) },
      )
      expect(textOf(result)).toBe('3 steps')
      expect(
        seen.map(({ progress, total }) => [progress, total]),
        `${era} ${server}`,
      ).toEqual([
        [1, 3],
        [2, 3],
        [3, 3],
      ])
    }
  }
  // The token of the client comes back as it is, whatever the server was sent.
  const session = await openSession(opened.port)
  for (const token of [0, 'tok', '']) {
    const answer = await session.call('oldpipe__progress', { count: 1 }, 'p', { progressToken: token })
    expect(answer.events[0]?.['params'], String(token)).toEqual({ progressToken: token, progress: 1, total: 1 })
  }
})

verifies('gateway.010', async () => {
  await using four = await fourServers()
  await using opened = await open(four)
  const session = await openSession(opened.port)
  await using watcher = await connect(opened.url, 'legacy')
  const cancelledAt = async (server: string): Promise<number> => (await seenBy(watcher, server)).cancelled.length
  for (const server of SERVERS) {
    const isModernHttp = server === 'newhttp' // there the exchange is dropped instead
    const held = session.call(`${server}__silent`, {}, `held-${server}`)
    const dropped = new Stream(opened.port, {
      headers: session.headers,
      body: rpc('tools/call', { name: `${server}__silent`, arguments: {} }, `drop-${server}`),
    })
    await expect.poll(async () => (await seenBy(watcher, server)).calls['silent']).toBe(2)
    await session.post(
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: `held-${server}` } }),
    )
    await held
    dropped.drop()
    if (!isModernHttp) await expect.poll(() => cancelledAt(server)).toBe(2)
    const controller = new AbortController()
    await using modern = await connect(opened.url, 'modern')
    const call = modern.callTool(`${server}__silent`, {}, { signal: controller.signal })
    await expect.poll(async () => (await seenBy(watcher, server)).calls['silent']).toBe(3)
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'cancelled' })
    if (!isModernHttp) await expect.poll(() => cancelledAt(server)).toBe(3)
    expect(textOf(await watcher.callTool(`${server}__echo`, { text: 'alive' }))).toBe('alive')
  }
  await expect.poll(() => opened.gateway.counts.calls).toBe(0)
})

verifies('gateway.011', async () => {
  await using four = await fourServers()
  await using opened = await open(four)
  for (const server of SERVERS) {
    await using talker = await connect(opened.url, 'legacy', { name: 'talker' })
    await using other = await connect(opened.url, 'legacy', { name: 'other' })
    await talker.request('logging/setLevel', { level: 'debug' })
    await other.request('logging/setLevel', { level: 'debug' })
    const logs = (client: typeof talker): unknown[] =>
      client.heard.filter(({ method }) => method === 'notifications/message').map(({ params }) => params)
    await talker.callTool(`${server}__log`, { count: 2 })
    expect(logs(talker), server).toEqual(
      [1, 2].map((n) => ({ level: 'info', logger: `${server}/scripted`, data: `message ${n}` })),
    )
    expect(logs(other), server).toEqual([])
    if (server.startsWith('old')) expect((await seenBy(talker, server)).logLevel).toBe('debug')
    // Less is heard by those who want less, whatever others have made the server say.
    await other.request('logging/setLevel', { level: 'error' })
    await other.callTool(`${server}__log`, { count: 1 })
    expect(logs(other), server).toEqual([])

    await using modern = await connect(opened.url, 'modern')
    await modern.callTool(`${server}__log`, { count: 1 })
    expect(logs(modern)).toEqual([])
    await modern.request('tools/call', {
      name: `${server}__log`,
      arguments: { count: 1 },
      _meta: { 'io.modelcontextprotocol/logLevel': 'info' },
    })
    expect(logs(modern), server).toEqual([{ level: 'info', logger: `${server}/scripted`, data: 'message 1' }])
  }
})

test('a log message of no call goes to the only session, and to nobody when there are several', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  await using first = await connect(opened.url, 'legacy')
  const count = (client: typeof first): number =>
    client.heard.filter(({ method }) => method === 'notifications/message').length
  await first.callTool('one__log', { count: 1 })
  expect(count(first)).toBe(1)
  await using second = await connect(opened.url, 'legacy')
  // Two calls at once on one pipe: the message could be anybody's.
  const held = second.callTool('one__late', { ms: 150 })
  await expect.poll(async () => opened.gateway.counts.calls).toBe(1)
  await first.callTool('one__log', { count: 1 })
  await held
  expect([count(first), count(second)]).toEqual([1, 0])
})

verifies('gateway.026', async () => {
  await using http = await startScriptedHttp({
    answers: 'sse',
    tools: [{ name: 'flood', does: { kind: 'log', level: 'info', count: 1_000 } }],
  })
  await using opened = await open({ servers: { one: { url: http.url } } })
  const session = await openSession(opened.port)
  const answer = await session.call('one__flood')
  const logs = answer.events.filter(({ method }) => method === 'notifications/message')
  expect(logs.length).toBeLessThanOrEqual(201)
  expect(logs.length).toBeGreaterThanOrEqual(100)
  expect(answer.json['result']).toBeDefined()
})

verifies('gateway.017', async () => {
  await using four = await fourServers()
  await using opened = await open(four)
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    for (const server of SERVERS) {
      await expect(client.callTool(`${server}__refuse`), `${era} ${server}`).rejects.toMatchObject({
        details: { rpc: { code: -32050, message: `Server "${server}": Refused, as asked`, data: { why: 'test' } } },
      })
      const failed = await client.callTool(`${server}__fail`)
      expect([failed.isError, textOf(failed)]).toEqual([true, 'It went wrong, as asked'])
    }
    const gone = client.callTool('oldpipe__crash')
    await expect(gone).rejects.toMatchObject({
      details: {
        rpc: { code: -32603, message: expect.stringContaining('oldpipe'), data: { code: 'OUTCOME_UNKNOWN' } },
      },
    })
    await expect(
      client.request('resources/read', { uri: 'scripted://nobody', _meta: { 'convoke/server': 'newpipe' } }),
    ).rejects.toMatchObject({
      details: {
        rpc: {
          code: -32602,
          message: 'resources/read failed for "newpipe" (scripted://nobody): Server "newpipe": Resource not found',
          data: { uri: 'scripted://nobody' },
        },
      },
    })
    expect(textOf(await client.callTool('oldpipe__echo', { text: 'again' }))).toBe('again')
  }
})

verifies('gateway.018', async () => {
  const odd = {
    content: [
      { type: 'hologram', data: [1, { deep: null }] },
      { type: 'text', text: '\u2028', annotations: { audience: ['user'], strange: 1 } },
    ],
    structuredContent: { sum: 3, big: 12345678901234567000 },
    vendorMember: { kept: true },
  }
  const tools = [
    { name: 'odd', does: { kind: 'content', ...odd } },
    { name: 'big', does: { kind: 'big', bytes: 3_000_000 } },
    {
      name: 'echo',
      title: 'Echo',
      vendor: { kept: 1 },
      annotations: { readOnlyHint: true, strange: 2 },
      icons: [{ src: 'data:,x' }],
      execution: { taskSupport: 'optional' },
    },
  ] as const
  await using four = await fourServers({ tools })
  await using opened = await open(four)
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    const { tools: listed } = await client.request('tools/list')
    for (const server of SERVERS) {
      const {
        resultType: _,
        _meta: __,
        ...result
      } = await client.request('tools/call', { name: `${server}__odd`, arguments: {} })
      expect(result, `${era} ${server}`).toEqual(odd)
      expect(textOf(await client.callTool(`${server}__big`, { bytes: 3_000_000 })).length).toBe(3_000_000)
      const echo = (listed as Json[]).find(({ name }) => name === `${server}__echo`)
      expect(echo).toMatchObject({
        title: 'Echo',
        vendor: { kept: 1 },
        annotations: { readOnlyHint: true, strange: 2 },
        icons: [{ src: 'data:,x' }],
        execution: { taskSupport: 'optional' },
      })
    }
  }
})
