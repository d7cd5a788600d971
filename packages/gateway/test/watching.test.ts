// Resources that are watched, connections of a session's own, and the end of it all.
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { openSession, rpc } from '../../wire/test/server-fixture.ts'
import { type Client, connect, ERAS, open, seenBy, textOf } from './fixture.ts'

type Json = Record<string, unknown>
const URI = 'scripted://one'
const updates = (client: Client): unknown[] =>
  client.heard.filter(({ method }) => method === 'notifications/resources/updated').map(({ params }) => params['uri'])

verifies('gateway.012', async () => {
  await using http = await startScriptedHttp({ era: 'modern' })
  await using opened = await open({ servers: { old: scriptedStdio(), new: { url: http.url } } })
  await using toucher = await connect(opened.url, 'legacy')
  for (const server of ['old', 'new']) {
    const meta = { 'convoke/server': server }
    await using first = await connect(opened.url, 'legacy')
    await using second = await connect(opened.url, 'legacy')
    await using listener = await connect(opened.url, 'modern')
    await using bystander = await connect(opened.url, 'legacy')
    const watch = (client: Client, method: string): Promise<Json> =>
      client.request(`resources/${method}`, { uri: URI, _meta: meta })
    await watch(first, 'subscribe')
    await watch(first, 'subscribe')
    await watch(second, 'subscribe')
    const listening = await listener
      .request('tools/list')
      .then(() => listener.subscribe({ resourceSubscriptions: ['scripted://two'] }))
    // Which server has it cannot be known from the URI alone, so it is not promised.
    expect(listening.honored.resourceSubscriptions ?? []).toEqual([])
    await listening.close()
    expect(opened.gateway.counts.subscriptions).toBe(1)
    await toucher.callTool(`${server}__touch`, { uri: URI })
    for (const client of [first, second]) await client.until(() => updates(client).length === 1)
    expect(updates(first)).toEqual([URI])
    await watch(first, 'unsubscribe')
    await watch(first, 'unsubscribe')
    await toucher.callTool(`${server}__touch`, { uri: URI })
    await second.until(() => updates(second).length === 2)
    expect([updates(first).length, updates(bystander).length]).toEqual([1, 0])
    await second.close() // the last one leaves without a word
    await expect.poll(() => opened.gateway.counts.subscriptions).toBe(0)
    if (server === 'old') {
      const { requests } = await seenBy(toucher, 'old')
      expect(requests.filter((method) => method.endsWith('subscribe'))).toEqual([
        'resources/subscribe',
        'resources/unsubscribe',
      ])
    }
  }
})

test('a modern client listens to the resources of a single owner, and is told when it comes back', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  await using client = await connect(opened.url, 'modern')
  await using listening = await client.subscribe({
    resourceSubscriptions: [URI, 'scripted://item/7', 'nobody://x'],
    toolsListChanged: true,
  })
  expect(listening.honored).toEqual({ resourceSubscriptions: [URI, 'scripted://item/7'], toolsListChanged: true })
  await client.callTool('one__touch', { uri: URI })
  await client.until(() => updates(client).length === 1)
  // The server crashes: the subscription is made again with its next start.
  await expect(client.callTool('one__crash')).rejects.toThrow()
  await client.callTool('one__echo', { text: 'back' })
  await expect
    .poll(
      async () => (await seenBy(client, 'one')).requests.filter((method) => method === 'resources/subscribe').length,
    )
    .toBe(2)
  await client.callTool('one__touch', { uri: 'scripted://item/7' })
  await client.until(() => updates(client).length === 2)
})

test('what cannot be watched is refused, naming the reason', async () => {
  await using opened = await open({
    servers: { one: scriptedStdio({ capabilities: { tools: {}, resources: {} } }), two: scriptedStdio() },
  })
  const session = await openSession(opened.port)
  const ask = async (params: Json): Promise<unknown> =>
    (await session.post(rpc('resources/subscribe', params))).json['error']
  expect(await ask({ uri: URI })).toMatchObject({ code: -32602, message: expect.stringMatching(/one, two/) })
  expect(await ask({ uri: 'nobody://x' })).toMatchObject({ code: -32602 })
  expect(await ask({ uri: 7 })).toMatchObject({ code: -32602 })
  expect(await ask({ uri: URI, _meta: { 'convoke/server': 'one' } })).toMatchObject({
    code: -32601,
    message: 'Server "one" does not tell about changes of its resources',
  })
  expect(await ask({ uri: URI, _meta: { 'convoke/server': 'nobody' } })).toMatchObject({ code: -32601 })
  expect(opened.gateway.counts.subscriptions).toBe(0)
})

verifies('gateway.015', async () => {
  await using opened = await open({
    servers: { own: scriptedStdio(), shared: scriptedStdio() },
    overrides: { own: { isolation: 'session' } },
  })
  const elicit = { 'elicitation/create': async () => ({ action: 'accept', content: { name: 'first' } }) }
  const first = await connect(opened.url, 'legacy', { name: 'first', handlers: elicit })
  const second = await connect(opened.url, 'legacy', { name: 'second' })
  try {
    const [mine, theirs] = [await seenBy(first, 'own'), await seenBy(second, 'own')]
    expect(mine.pid).not.toBe(theirs.pid)
    expect(mine.lastInitialize).toMatchObject({
      capabilities: { elicitation: { form: {}, url: {} } },
      clientInfo: { name: 'first' },
    })
    expect(theirs.lastInitialize).toMatchObject({ capabilities: {}, clientInfo: { name: 'second' } })
    expect((await seenBy(first, 'shared')).pid).toBe((await seenBy(second, 'shared')).pid)
    expect((await seenBy(first, 'own')).pid).toBe(mine.pid)
    expect(JSON.parse(textOf(await first.callTool('own__elicit')))).toMatchObject({ action: 'accept' })
    const seen: unknown[] = []
    await first.callTool('own__progress', { count: 2 }, { onProgress: ({ progress }) => void seen.push(progress) })
    expect(seen).toEqual([1, 2])
    expect(opened.gateway.counts.dedicated).toBe(2)
    await expect(first.callTool('own__crash')).rejects.toThrow()
    expect((await seenBy(first, 'own')).pid).not.toBe(mine.pid)
    expect((await seenBy(second, 'own')).pid).toBe(theirs.pid)
    await first.close()
    await expect.poll(() => opened.gateway.counts.dedicated).toBe(1)
    // A modern client has no session: it shares.
    await using modern = await connect(opened.url, 'modern')
    expect([mine.pid, theirs.pid]).not.toContain((await seenBy(modern, 'own')).pid)
  } finally {
    await first.close()
    await second.close()
  }
  await expect.poll(() => opened.gateway.counts.dedicated).toBe(0)
})

verifies('gateway.025', async () => {
  await using opened = await open({
    servers: { own: scriptedStdio(), shared: scriptedStdio() },
    overrides: { own: { isolation: 'session' } },
  })
  const client = await connect(opened.url, 'legacy')
  const listener = await connect(opened.url, 'modern')
  const listening = await listener.subscribe({ toolsListChanged: true, resourceSubscriptions: [] })
  await client.request('resources/subscribe', { uri: URI, _meta: { 'convoke/server': 'shared' } })
  await seenBy(client, 'own')
  const finishing = client.callTool('shared__late', { ms: 300, text: 'in time' })
  const stuck = client.callTool('shared__silent').catch((error: Error) => error)
  await expect.poll(() => opened.gateway.counts.calls).toBe(3) // the listener is one of them
  expect(opened.gateway.counts).toMatchObject({ sessions: 1, listeners: 1, subscriptions: 1, dedicated: 1 })
  const closing = opened.gateway.close({ drainMs: 900 })
  expect(textOf(await finishing)).toBe('in time')
  await closing
  expect(await stuck).toBeInstanceOf(Error)
  expect(opened.gateway.counts).toEqual({
    sessions: 0,
    calls: 0,
    parkedCalls: 0,
    listeners: 0,
    subscriptions: 0,
    dedicated: 0,
  })
  await opened.gateway.closed
  await listening.close()
  await client.close()
  await listener.close()
  // The host is the caller's.
  const binding = await opened.host.bind()
  const tool = binding.tool('shared__seen')
  if (tool === undefined) throw new Error('no tool')
  const outcome = await binding.call(tool, {})
  const seen = JSON.parse(textOf((outcome as { result: Json }).result)) as { cancelled: unknown[]; requests: string[] }
  expect(seen.cancelled.length).toBe(1)
  expect(seen.requests).toContain('resources/unsubscribe')
  await binding[Symbol.asyncDispose]()
})

verifies('gateway.023', async () => {
  const tools = { allow: ['echo', 'seen', 'late'], deny: ['late'] }
  for (const overrides of [{ one: { tools } }, { one: { tools, isolation: 'session' as const } }]) {
    await using opened = await open({
      servers: { one: scriptedStdio(), hidden: scriptedStdio() },
      overrides: { ...overrides, hidden: { omitToolsFrom: ['gateway'] } },
    })
    for (const era of ERAS) {
      await using client = await connect(opened.url, era)
      const { tools: listed } = await client.request('tools/list')
      expect((listed as Json[]).map(({ name }) => name)).toEqual(['one__echo', 'one__seen'])
      for (const name of ['one__late', 'one__fail', 'hidden__echo'])
        await expect(client.callTool(name), name).rejects.toMatchObject({ details: { rpc: { code: -32602 } } })
      expect((await seenBy(client, 'one')).calls).not.toHaveProperty('late')
    }
  }
  await using through = await open({
    servers: { one: scriptedStdio() },
    overrides: { one: { tools } },
    options: { transparent: 'one' },
  })
  for (const era of ERAS) {
    await using client = await connect(through.url, era)
    const { tools: listed } = await client.request('tools/list')
    expect((listed as Json[]).map(({ name }) => name)).toEqual(['echo', 'seen'])
    await expect(client.callTool('late')).rejects.toMatchObject({ details: { rpc: { code: -32602 } } })
    expect((await seenBy(client, '')).calls).not.toHaveProperty('late')
  }
})
