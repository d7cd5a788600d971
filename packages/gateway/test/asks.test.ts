// What servers ask back, in every pairing of eras and transports.
import { parkingHandlers } from '@convoke/gateway'
import { scriptedStdio, startScriptedHttp, verifies } from '@convoke/testkit'
import type { JsonObject, ServerRequestHandler } from '@convoke/wire'
import { describe, expect, test } from 'vitest'
import { decideAsk } from '../src/asks.ts'
import { connect, ERAS, open, textOf } from './fixture.ts'

const answers: Record<string, ServerRequestHandler> = {
  'elicitation/create': async () => ({ action: 'accept', content: { name: 'Ada' } }),
  'sampling/createMessage': async () => ({ role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }),
  'roots/list': async () => ({ roots: [{ uri: 'file:///work', name: 'work' }] }),
}

async function servers(): Promise<
  { servers: Record<string, ReturnType<typeof scriptedStdio> | { url: string }> } & AsyncDisposable
> {
  const [oldHttp, newHttp] = [await startScriptedHttp({ answers: 'sse' }), await startScriptedHttp({ era: 'modern' })]
  return {
    servers: {
      oldpipe: scriptedStdio(),
      newpipe: scriptedStdio({ era: 'modern' }),
      oldhttp: { url: oldHttp.url },
      newhttp: { url: newHttp.url },
    },
    async [Symbol.asyncDispose]() {
      await oldHttp.close()
      await newHttp.close()
    },
  }
}
const NAMES = ['oldpipe', 'newpipe', 'oldhttp', 'newhttp']

verifies('gateway.013', async () => {
  await using four = await servers()
  await using opened = await open(four)
  for (const era of ERAS) {
    const asked: { method: string; params: JsonObject }[] = []
    const handlers = Object.fromEntries(
      Object.entries(answers).map(([method, answer]): [string, ServerRequestHandler] => [
        method,
        async (params, context) => {
          asked.push({ method, params })
          return answer(params, context)
        },
      ]),
    )
    await using client = await connect(opened.url, era, { handlers })
    await using bystander = await connect(opened.url, era, {
      handlers: { 'elicitation/create': async () => ({ action: 'accept', content: { name: 'Mallory' } }) },
    })
    await bystander.request('tools/list')
    for (const server of NAMES) {
      const elicited = textOf(await client.callTool(`${server}__elicit`))
      expect(JSON.parse(elicited), `${era} ${server}`).toEqual({ action: 'accept', content: { name: 'Ada' } })
      expect(asked.at(-1)).toMatchObject({
        method: 'elicitation/create',
        params: { message: `Server "${server}" asks: What is your name?` },
      })
      expect(JSON.parse(textOf(await client.callTool(`${server}__sample`)))).toMatchObject({ model: 'm' })
      expect(JSON.parse(textOf(await client.callTool(`${server}__roots`)))).toEqual({
        roots: [{ uri: 'file:///work', name: 'work' }],
      })
    }
    expect(asked.length).toBe(12)
  }
  expect(opened.gateway.counts.parkedCalls).toBe(0)
})

test('questions of calls that run side by side find their own clients', async () => {
  await using four = await servers()
  await using opened = await open(four)
  const clients = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      connect(opened.url, ERAS[n % 2] as 'legacy', {
        handlers: { 'elicitation/create': async () => ({ action: 'accept', content: { name: `client ${n}` } }) },
      }),
    ),
  )
  try {
    // A pipe is asked one call at a time once it has asked back; before that it cannot be known whose question it is.
    for (const server of ['oldpipe', 'newpipe']) await clients[0]?.callTool(`${server}__elicit`)
    const rounds = clients.flatMap((client, n) =>
      NAMES.map(async (server) => [n, JSON.parse(textOf(await client.callTool(`${server}__elicit`)))] as const),
    )
    for (const [n, answer] of await Promise.all(rounds))
      expect(answer).toEqual({ action: 'accept', content: { name: `client ${n}` } })
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
})

verifies('gateway.014', async () => {
  await using four = await servers()
  await using opened = await open(four)
  for (const era of ERAS) {
    await using client = await connect(opened.url, era, { capabilities: {} })
    for (const server of NAMES.filter((name) => name.startsWith('old'))) {
      expect(JSON.parse(textOf(await client.callTool(`${server}__elicit`))), `${era} ${server}`).toMatchObject({
        action: 'decline',
        _meta: { 'convoke/reason': 'The client cannot be asked: it shows no forms' },
      })
      const sampled = await client.callTool(`${server}__sample`)
      expect([sampled.isError, textOf(sampled)]).toEqual([true, expect.stringMatching(/^-32601 /)])
      expect(JSON.parse(textOf(await client.callTool(`${server}__roots`)))).toEqual({ roots: [] })
    }
  }
})

test('a question that its client declines, fails or never answers ends the question, not the call', async () => {
  await using four = await servers()
  await using opened = await open(four)
  for (const era of ERAS) {
    await using declining = await connect(opened.url, era, {
      handlers: { 'elicitation/create': async () => ({ action: 'decline' }) },
    })
    expect(JSON.parse(textOf(await declining.callTool('oldhttp__elicit')))).toEqual({ action: 'decline' })
  }
  await using hasty = await open({ ...four, options: { limits: { askTimeoutMs: 200 } } })
  await using silent = await connect(hasty.url, 'legacy', {
    handlers: { 'elicitation/create': () => new Promise(() => {}) },
  })
  const late = await silent.callTool('oldhttp__elicit')
  expect([late.isError, textOf(late)]).toEqual([true, '-32603 The client could not answer'])
})

test('the trust of the host comes before every client, in every pairing of eras', async () => {
  await using four = await servers()
  await using opened = await open({ ...four, host: { trust: { approvals: 'never', fullAccess: false } } })
  for (const era of ERAS) {
    let asked = 0
    await using client = await connect(opened.url, era, {
      handlers: {
        'elicitation/create': async () => {
          asked += 1
          return { action: 'accept', content: { name: 'Ada' } }
        },
      },
    })
    for (const server of NAMES)
      expect(JSON.parse(textOf(await client.callTool(`${server}__elicit`))), `${era} ${server}`).toMatchObject({
        action: 'decline',
      })
    expect(asked).toBe(0)
  }
  opened.host.replaceTrust({ reviewer: async () => ({ action: 'accept', content: { name: 'reviewed' } }) })
  for (const era of ERAS) {
    await using client = await connect(opened.url, era, { handlers: answers })
    for (const server of NAMES)
      expect(JSON.parse(textOf(await client.callTool(`${server}__elicit`))), `${era} ${server}`).toMatchObject({
        content: { name: 'reviewed' },
      })
  }
  expect(opened.gateway.counts.parkedCalls).toBe(0)
})

test('what a client cannot be asked waits for an answer of the host, if the gateway is told to park', async () => {
  await using four = await servers()
  await using opened = await open({
    ...four,
    host: { handlers: parkingHandlers },
    options: { questions: 'park' },
  })
  await using client = await connect(opened.url, 'legacy', { capabilities: {} })
  for (const server of NAMES.filter((name) => name.startsWith('old'))) {
    const parked = new Promise<string>((resolve) => {
      const stop = opened.host.subscribe((event) => {
        // Told when it is shown, and again when it turns out that it cannot be.
        if (event.kind !== 'question.asked' || event.question.expiresAtMs === undefined) return
        stop()
        resolve(event.question.id)
      })
    })
    const call = client.callTool(`${server}__elicit`)
    opened.host.answer(await parked, { action: 'accept', content: { name: 'from the desk' } })
    expect(JSON.parse(textOf(await call)), server).toEqual({ action: 'accept', content: { name: 'from the desk' } })
  }
})

describe('decideAsk', () => {
  const form = { message: 'x', requestedSchema: {} }
  test.each([
    ['elicitation/create', { elicitation: {} }, form, 'ask'],
    ['elicitation/create', { elicitation: { form: {} } }, { ...form, mode: 'form' }, 'ask'],
    ['elicitation/create', { elicitation: { form: {} } }, { mode: 'url', url: 'https://x' }, 'answer'],
    ['elicitation/create', { elicitation: { url: {} } }, { mode: 'url', url: 'https://x' }, 'ask'],
    ['elicitation/create', { elicitation: { url: {} } }, form, 'answer'],
    ['elicitation/create', {}, form, 'answer'],
    ['elicitation/create', { elicitation: true }, form, 'answer'],
    ['sampling/createMessage', { sampling: {} }, {}, 'ask'],
    ['sampling/createMessage', { sampling: {} }, { tools: [] }, 'refuse'],
    ['sampling/createMessage', { sampling: { tools: {} } }, { tools: [] }, 'ask'],
    ['sampling/createMessage', {}, {}, 'refuse'],
    ['roots/list', { roots: {} }, {}, 'ask'],
    ['roots/list', {}, {}, 'answer'],
    ['vendor/ask', { vendor: {} }, {}, 'refuse'],
  ])('%s with %o asked %o: %s', (method, capabilities, params, kind) => {
    expect(decideAsk(capabilities, method, params).kind).toBe(kind)
  })
})
