// What clients see of many servers: names, lists, changes, owners.
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { modern, openSession, rpc } from '../../wire/test/server-fixture.ts'
import { connect, ERAS, open, seenBy, textOf } from './fixture.ts'

type Json = Record<string, unknown>
const namesOf = (result: Json, member = 'tools'): unknown[] => (result[member] as Json[]).map(({ name }) => name)

verifies('gateway.001', async () => {
  await using http = await startScriptedHttp({
    era: 'modern',
    name: 'inside',
    tools: [{ name: 'echo' }, { name: 'a.b', does: { kind: 'echo-name' } }],
  })
  await using opened = await open({
    servers: { old: scriptedStdio({ tools: [{ name: 'echo' }] }), new: { url: http.url } },
  })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    const { tools } = (await client.request('tools/list')) as { tools: Json[] }
    expect(tools.map(({ name }) => name)).toEqual(['new__a_b', 'new__echo', 'old__echo'])
    expect(tools.map((tool) => (tool['_meta'] as Json)['convoke/server'])).toEqual(['new', 'new', 'old'])
    expect(textOf(await client.callTool('old__echo', { text: 'ü"}],{\n' }))).toBe('ü"}],{\n')
    expect(textOf(await client.callTool('new__a_b'))).toBe('a.b')
    expect(client.serverInfo['name']).toBe('convoke')
  }
})

test('lists are one page, with caching hints for modern clients', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  const session = await openSession(opened.port)
  const { result } = (await modern(opened.port, 'tools/list')).json as { result: Json }
  expect([result['resultType'], result['ttlMs'], result['cacheScope']]).toEqual(['complete', 5_000, 'private'])
  for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])
    expect((await session.post(rpc(method, { cursor: 'x' }))).json['error'], method).toMatchObject({ code: -32602 })
})

verifies('gateway.002', async () => {
  await using opened = await open({
    servers: {
      one: scriptedStdio({ tools: [{ name: 'search_files' }] }),
      down: scriptedStdio({ exitAtStart: { code: 3 }, stderr: ['no key'] }),
    },
    options: { limits: { callWaitMs: 200 } },
  })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    await expect(client.callTool('one__search_file')).rejects.toMatchObject({
      details: { rpc: { code: -32602, message: 'Unknown tool: one__search_file. Did you mean "one__search_files"?' } },
    })
    await expect(client.callTool('down__echo')).rejects.toMatchObject({
      details: {
        rpc: {
          code: -32603,
          message: expect.stringMatching(/Server "down" is not ready: .*no key/),
          data: { code: 'SERVER_NOT_READY', server: 'down' },
        },
      },
    })
    await expect(client.request('tools/call', {})).rejects.toMatchObject({ details: { rpc: { code: -32602 } } })
    await expect(client.request('vendor/x')).rejects.toMatchObject({ details: { rpc: { code: -32601 } } })
  }
})

verifies('gateway.003', async () => {
  await using opened = await open({
    servers: {
      quick: scriptedStdio({ tools: [{ name: 'echo' }] }),
      slow: scriptedStdio({ startDelayMs: 2_500, tools: [{ name: 'echo' }] }),
    },
    options: { limits: { listWaitMs: 1 } },
  })
  await opened.host.whenSettled({ servers: ['quick'] })
  await using client = await connect(opened.url, 'legacy')
  await using listener = await connect(opened.url, 'modern')
  await using _listening = await listener.subscribe({ toolsListChanged: true })
  await expect.poll(async () => namesOf(await client.request('tools/list'))).toEqual(['quick__echo'])
  expect(textOf(await client.callTool('quick__echo', { text: 'at once' }))).toBe('at once')
  for (const told of [client, listener]) told.heard.length = 0
  // A call waits for the server that is still starting.
  expect(textOf(await client.callTool('slow__echo', { text: 'waited' }))).toBe('waited')
  for (const told of [client, listener])
    await told.until(() => told.heard.some(({ method }) => method === 'notifications/tools/list_changed'))
  expect(namesOf(await client.request('tools/list'))).toEqual(['quick__echo', 'slow__echo'])
})

verifies('gateway.004', async () => {
  await using http = await startScriptedHttp({ era: 'modern' })
  await using opened = await open({ servers: { old: scriptedStdio(), new: { url: http.url } } })
  await using client = await connect(opened.url, 'legacy')
  await using listener = await connect(opened.url, 'modern')
  await using deaf = await connect(opened.url, 'modern')
  await using _listening = await listener.subscribe({ toolsListChanged: true })
  await using _other = await deaf.subscribe({ promptsListChanged: true })
  const changes = (told: typeof client): number =>
    told.heard.filter(({ method }) => method === 'notifications/tools/list_changed').length
  for (const [count, server] of ['old', 'new'].entries()) {
    await client.callTool(`${server}__change`, { count: 1 })
    await client.until(() => changes(client) > count)
    await listener.until(() => changes(listener) > count)
    const added = namesOf(await client.request('tools/list')).filter((name) =>
      String(name).startsWith(`${server}__added`),
    )
    expect(added.length).toBe(1)
    expect(textOf(await listener.callTool(String(added[0]), { text: 'fresh' }))).toBe('fresh')
  }
  expect(changes(deaf)).toBe(0)
})

verifies('gateway.005', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  await using client = await connect(opened.url, 'legacy')
  const before = await seenBy(client, 'one')
  await expect(client.callTool('one__crash')).rejects.toMatchObject({
    details: { rpc: { code: -32603, message: expect.stringContaining('one') } },
  })
  expect(textOf(await client.callTool('one__echo', { text: 'back' }))).toBe('back')
  expect((await seenBy(client, 'one')).pid).not.toBe(before.pid)
})

test('the tools of a crashed server come back to those who watch, without a call', async () => {
  await using opened = await open({ servers: { one: scriptedStdio() } })
  await using client = await connect(opened.url, 'legacy')
  const changes = (): number =>
    client.heard.filter(({ method }) => method === 'notifications/tools/list_changed').length
  await expect(client.callTool('one__crash')).rejects.toThrow()
  await client.until(() => changes() >= 2)
  expect(namesOf(await client.request('tools/list'))).toContain('one__echo')
})

verifies('gateway.006', async () => {
  await using bad = await startScriptedHttp({
    failures: [
      { method: 'resources/list', status: 400 },
      { method: 'prompts/list', status: 400 },
    ],
  })
  await using opened = await open({ servers: { one: scriptedStdio(), two: scriptedStdio(), bad: { url: bad.url } } })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    const owners = async (method: string, member: string): Promise<unknown[]> => {
      const result = await client.request(method)
      return (result[member] as Json[]).map((item) => [
        item['uri'] ?? item['uriTemplate'] ?? item['name'],
        (item['_meta'] as Json)['convoke/server'],
      ])
    }
    expect(await owners('resources/list', 'resources')).toEqual([
      ['scripted://one', 'one'],
      ['scripted://two', 'one'],
      ['scripted://one', 'two'],
      ['scripted://two', 'two'],
    ])
    expect(await owners('resources/templates/list', 'resourceTemplates')).toContainEqual([
      'scripted://item/{id}',
      'bad',
    ])
    expect(await owners('prompts/list', 'prompts')).toEqual([
      ['one__greet', 'one'],
      ['two__greet', 'two'],
    ])
    const { _meta: meta } = await client.request('resources/list')
    expect((meta as Json)['convoke/failures']).toEqual([
      { server: 'bad', code: expect.any(String), message: expect.stringContaining('bad') },
    ])
  }
})

verifies('gateway.007', async () => {
  await using opened = await open({ servers: { one: scriptedStdio(), two: scriptedStdio() } })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    const ambiguous = client.request('resources/read', { uri: 'scripted://one' })
    await expect(ambiguous).rejects.toMatchObject({
      details: { rpc: { code: -32602, message: expect.stringMatching(/one, two/), data: { servers: ['one', 'two'] } } },
    })
    const result = await client.request('resources/read', { uri: 'scripted://one', _meta: { 'convoke/server': 'two' } })
    expect(result['contents']).toEqual([
      { uri: 'scripted://one', mimeType: 'text/plain', text: 'Content of scripted://one' },
    ])
    const reads = async (server: string): Promise<number> =>
      (await seenBy(client, server)).requests.filter((method) => method === 'resources/read').length
    expect([await reads('one'), await reads('two')]).toEqual([0, era === 'legacy' ? 1 : 2])
  }
})

verifies('gateway.008', async () => {
  await using opened = await open({ servers: { one: scriptedStdio(), two: scriptedStdio() } })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    const { messages } = await client.request('prompts/get', { name: 'two__greet', arguments: { who: 'Ada' } })
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Greet Ada' } }])
    const { completion } = await client.request('completion/complete', {
      ref: { type: 'ref/prompt', name: 'one__greet' },
      argument: { name: 'who', value: 'al' },
    })
    expect((completion as Json)['values']).toEqual(['alice', 'albert'])
    await expect(client.request('prompts/get', { name: 'one__gret' })).rejects.toMatchObject({
      details: { rpc: { code: -32602, message: expect.stringContaining('one__greet') } },
    })
  }
})

verifies('gateway.022', async () => {
  await using opened = await open({
    servers: { one: scriptedStdio({ instructions: 'Use echo first.\nThen \u202estop\u200b.' }), two: scriptedStdio() },
  })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era)
    expect(client.instructions).toBe(
      'Tools and prompts are named SERVER__NAME.\n\nServer "one" says of itself:\n> Use echo first.\n> Then stop.',
    )
  }
})

verifies('gateway.024', async () => {
  await using http = await startScriptedHttp({ era: 'modern' })
  await using opened = await open({ servers: { one: { url: http.url } } })
  await using client = await connect(opened.url, 'modern')
  await client.request('tools/list')
  const before = http.requests.length
  for (let round = 0; round < 5; round++) {
    await client.request('tools/list')
    await client.callTool('one__echo', { text: 'x' })
  }
  expect(http.requests.slice(before).map(({ rpc: method }) => method)).toEqual(
    Array.from({ length: 5 }, () => 'tools/call'),
  )
})
