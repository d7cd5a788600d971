// Many clients, hostile servers: nothing crosses, nothing leaks, nothing hidden comes through.
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { modern, openSession, rpc, send } from '../../wire/test/server-fixture.ts'
import { connect, ERAS, open, textOf } from './fixture.ts'

type Json = Record<string, unknown>
const crossServer = new URL('../../testkit/servers/gateway-crossing.mjs', import.meta.url).pathname

/** Everything that came before the answer is of this call. */
function expectOwn(events: readonly Json[], marker: string): void {
  for (const { method, params } of events) {
    if (method === 'notifications/progress') expect((params as Json)['message']).toBe(marker)
    if (method === 'notifications/message') expect((params as Json)['data']).toBe(marker)
  }
}

verifies(
  'security.076',
  async () => {
    await using opened = await open({ servers: { pipe: { command: process.execPath, args: [crossServer] } } })
    const clients = await Promise.all(
      Array.from({ length: 50 }, (_, n) => openSession(opened.port, { name: `client-${n}` })),
    )
    let answered = 0
    let cancelled = 0
    let seed = 20_261_130
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor(seed / 65_536) % below
    }
    const one = async (n: number, round: number): Promise<void> => {
      const client = clients[n] as (typeof clients)[number]
      const marker = `${n}:${round}`
      // Ids start at 0 everywhere, and numbers and texts are mixed.
      const id = round % 2 === 0 ? round : String(round)
      const modernCall = round % 5 === 4
      const args = { marker, delayMs: random(8), steps: 2 }
      const call = modernCall
        ? modern(
            opened.port,
            'tools/call',
            { name: 'pipe__cross', arguments: args },
            { id, meta: { progressToken: 1 } },
          )
        : client.call('pipe__cross', args, id, { progressToken: 1 })
      const mayCancel = !modernCall && random(4) === 0
      if (mayCancel)
        void client.post(
          JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }),
        )
      const { events, json } = await call
      expectOwn(events, marker)
      if (json['error'] !== undefined) {
        expect(mayCancel).toBe(true)
        cancelled++
        return
      }
      expect([json['id'], textOf(json['result'] as Json)]).toEqual([id, marker])
      answered++
    }
    for (let round = 0; round < 40; round++) await Promise.all(clients.map((_, n) => one(n, round)))
    expect(answered + cancelled).toBe(2_000)
    expect(answered).toBeGreaterThan(1_000)
    expect(opened.gateway.counts.calls).toBe(0)
  },
  120_000,
)

verifies('security.085', async () => {
  await using opened = await open({ servers: { pipe: { command: process.execPath, args: [crossServer] } } })
  const client = await openSession(opened.port)
  for (let round = 0; round < 20; round++) {
    const call = (name: string, id: number): Promise<{ json: Json }> =>
      client.call(`pipe__${name}`, { marker: `${name} ${round}` }, id)
    const [twice, stranger, plain] = await Promise.all([call('twice', 1), call('stranger', 2), call('cross', 3)])
    for (const [name, { json }] of [
      ['twice', twice],
      ['stranger', stranger],
      ['cross', plain],
    ] as const)
      expect(textOf(json['result'] as Json)).toBe(`${name} ${round}`)
  }
  // The answer comes after its client has hung up.
  const body = rpc('tools/call', { name: 'pipe__cross', arguments: { marker: 'late', delayMs: 100 } }, 4)
  const gone = send(opened.port, { headers: { ...client.headers, connection: 'close' }, body }).catch(
    (error: Error) => error,
  )
  await expect.poll(() => opened.gateway.counts.calls).toBe(1)
  await client.post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 4 } }))
  await gone
  expect(textOf((await client.call('pipe__cross', { marker: 'fine', delayMs: 150 }, 4)).json['result'] as Json)).toBe(
    'fine',
  )
})

verifies('security.083', async () => {
  await using http = await startScriptedHttp({
    tools: [
      { name: 'seen', does: { kind: 'seen' } },
      { name: 'stamped', _meta: { 'convoke/server': 'forged', 'convoke/x': 1, own: 2 } },
    ],
  })
  await using newer = await startScriptedHttp({ era: 'modern', tools: [{ name: 'seen', does: { kind: 'seen' } }] })
  await using opened = await open({ servers: { one: { url: http.url }, two: { url: newer.url } } })
  const canary = 'CANARY-0123456789'
  const headers = {
    cookie: canary,
    'proxy-authorization': canary,
    'x-api-key': canary,
    forwarded: canary,
    'x-forwarded-for': canary,
    authorization: `Bearer ${canary}`,
  }
  const session = await openSession(opened.port, { headers, name: canary })
  const meta = {
    progressToken: canary,
    'convoke/server': canary,
    'convoke/secret': canary,
    traceparent: '00-trace',
    vendor: 'kept',
  }
  for (const server of ['one', 'two']) {
    const answers = [
      await session.post(rpc('tools/call', { name: `${server}__seen`, arguments: {}, _meta: meta }), headers),
      await modern(opened.port, 'tools/call', { name: `${server}__seen`, arguments: {} }, { headers, meta }),
    ]
    for (const { json } of answers) {
      const { meta: arrived } = JSON.parse(textOf(json['result'] as Json)) as { meta: Json }
      expect(arrived).toMatchObject({ traceparent: '00-trace', vendor: 'kept' })
      expect(JSON.stringify(arrived)).not.toContain(canary)
      expect(Object.keys(arrived).filter((key) => key.startsWith('convoke/'))).toEqual([])
      expect(typeof arrived['progressToken']).toBe('number')
      const clientInfo = arrived['io.modelcontextprotocol/clientInfo'] as Json | undefined
      if (server === 'two') expect(clientInfo?.['name']).toBe('convoke')
    }
  }
  expect(JSON.stringify([http.requests, newer.requests])).not.toContain(canary)
  const { tools } = (await session.post(rpc('tools/list'))).json['result'] as { tools: Json[] }
  expect(tools.find(({ name }) => name === 'one__stamped')?.['_meta']).toEqual({ own: 2, 'convoke/server': 'one' })
})

verifies('security.084', async () => {
  const tags = [...'hidden orders']
    .map((letter) => String.fromCodePoint(0xe0000 + (letter.codePointAt(0) ?? 0)))
    .join('')
  const bad = `read\u202eme\u200b${tags}\u001b[8m\u009b31m\u0007`
  const arabic = 'مرحبا بالعالم'
  const family = '👨‍👩‍👧 नमस्‍ते'
  const tools = [
    {
      name: 'poisoned',
      title: bad,
      description: `${bad} ${arabic} ${family}`,
      inputSchema: {
        type: 'object',
        description: bad,
        properties: {
          x: {
            type: 'string',
            description: bad,
            enum: [bad, 'b'],
            default: bad,
            const: bad,
            examples: [bad],
            $comment: bad,
          },
        },
      },
      annotations: { title: bad },
    },
    { name: 'refuse', does: { kind: 'rpc-error', code: -32050, message: bad } },
    { name: 'tell', does: { kind: 'text', text: 'x' } },
  ] as const
  const folder = await mkdtemp(join(tmpdir(), 'convoke-hidden-'))
  try {
    writeFileSync(join(folder, 'text.json'), JSON.stringify(bad))
    await using opened = await open({
      servers: {
        one: scriptedStdio({ tools, instructions: bad }),
        pipe: { command: process.execPath, args: [crossServer, join(folder, 'text.json')] },
      },
    })
    const hidden = /(?![\t\n])\p{Cc}|[\u200b\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u
    for (const era of ERAS) {
      await using client = await connect(opened.url, era)
      const seen: unknown[] = [
        client.instructions,
        await client.request('tools/list'),
        await client.request('prompts/list'),
        await client.request('resources/list'),
      ]
      seen.push(await client.callTool('one__refuse').catch((error: { details: unknown }) => error.details))
      await client.callTool('pipe__hostile', {}, { onProgress: (progress) => void seen.push(progress) })
      const strings: string[] = []
      JSON.stringify(seen, (key, value: unknown) => {
        strings.push(key)
        if (typeof value === 'string') strings.push(value)
        return value
      })
      for (const text of strings) expect(hidden.test(text), JSON.stringify(text)).toBe(false)
      const { tools: listed } = seen[1] as { tools: Json[] }
      expect(listed.find(({ name }) => name === 'one__poisoned')?.['description']).toBe(
        `readme[8m31m ${arabic} ${family}`,
      )
    }
    const session = await openSession(opened.port)
    const { events } = await session.call('pipe__hostile', {}, 1, { progressToken: 1 })
    expect(events.map(({ method }) => method)).toContain('notifications/message')
    for (const event of events.slice(0, -1))
      expect(hidden.test(Object.values(event['params'] as Json).join('')), JSON.stringify(event)).toBe(false)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
