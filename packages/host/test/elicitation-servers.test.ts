// What real servers ask, over pipes and HTTP, in both eras.
import type { Host, HostEvent, HostOptions, PendingQuestion, TrustPolicy } from '@convoke/host'
import { type ScriptedTool, startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { callTool, eventOf, hostOf, http, scripted, seenBy, textIn } from './support.ts'

const NEVER: TrustPolicy = { approvals: 'never', fullAccess: false }
const FULL: TrustPolicy = { approvals: 'never', fullAccess: true }
const ASK: TrustPolicy = { approvals: 'ask', fullAccess: false }

const asking = (name: string, params: object): ScriptedTool => ({
  name,
  inputSchema: { type: 'object' },
  does: { kind: 'ask', method: 'elicitation/create', params },
})
const NAMED = { type: 'object', properties: { name: { type: 'string', default: 'Ada' } }, required: ['name'] }
const TOOLS: readonly ScriptedTool[] = [
  asking('form', {
    message: 'Who?',
    requestedSchema: NAMED,
    _meta: { progressToken: 9, 'convoke/approved': true, 'vendor/x': 1 },
  }),
  asking('empty', { mode: 'form', message: 'Go on?', requestedSchema: { type: 'object', properties: {} } }),
  asking('url', { mode: 'url', message: 'Sign in', url: 'https://sign.example/in', elicitationId: 'e1' }),
  asking('strange', { mode: 'openai/form', message: 'm' }),
  { name: 'seen', inputSchema: { type: 'object' }, does: { kind: 'seen' } },
]

/** Resolves when so many questions are open. */
async function questionsOf(host: Host, count: number): Promise<readonly PendingQuestion[]> {
  while (host.questions().length < count) await eventOf(host, 'question.asked')
  return host.questions()
}

interface Four extends AsyncDisposable {
  readonly host: Host
  readonly events: HostEvent[]
}
const NAMES = ['oldpipe', 'newpipe', 'oldhttp', 'newhttp']

async function four(options: Omit<HostOptions, 'definitions'>): Promise<Four> {
  const old = await startScriptedHttp({ answers: 'sse', tools: TOOLS })
  const modern = await startScriptedHttp({ era: 'modern', tools: TOOLS })
  const { host, events } = await hostOf(
    [
      scripted('oldpipe', { tools: TOOLS }),
      scripted('newpipe', { era: 'modern', tools: TOOLS }),
      http('oldhttp', old.url),
      http('newhttp', modern.url),
    ],
    options,
  )
  await host.whenSettled()
  return {
    host,
    events,
    async [Symbol.asyncDispose]() {
      await host.close()
      await old.close()
      await modern.close()
    },
  }
}

test('the callback sees what a person needs, in both eras and over both transports, and its answer goes back', async () => {
  const seen: unknown[] = []
  await using servers = await four({
    handlers: {
      elicit: async (params, { question }) => {
        seen.push([question.server, question.mode, question.message, question.url, params['_meta']])
        return question.mode === 'url'
          ? { action: 'accept', _meta: { 'vendor/back': 2 } }
          : {
              action: 'accept',
              content: { name: String((question.requestedSchema as typeof NAMED).properties.name.default) },
            }
      },
    },
  })
  await using binding = await servers.host.bind()
  for (const server of NAMES) {
    expect(JSON.parse(textIn(await callTool(binding, `${server}/form`))), server).toMatchObject({
      action: 'accept',
      content: { name: 'Ada' },
    })
    expect(JSON.parse(textIn(await callTool(binding, `${server}/url`))), server).toMatchObject({
      action: 'accept',
      _meta: { 'vendor/back': 2 },
    })
  }
  expect(seen).toEqual(
    NAMES.flatMap((server) => [
      [server, 'form', 'Who?', undefined, { 'vendor/x': 1 }],
      [server, 'url', 'Sign in', 'https://sign.example/in', undefined],
    ]),
  )
  expect(servers.host.questionOutcomes.map(({ action, by }) => `${action} ${by}`)).toEqual(Array(8).fill('accept ask'))
})

test('under full access an empty form is accepted and an address is not, in both eras and over both transports', async () => {
  await using servers = await four({
    trust: FULL,
    handlers: { elicit: () => Promise.reject(new Error('nobody is asked')) },
  })
  await using binding = await servers.host.bind()
  for (const server of NAMES) {
    const answers = []
    for (const tool of ['empty', 'form', 'url'])
      answers.push(JSON.parse(textIn(await callTool(binding, `${server}/${tool}`))) as unknown)
    expect([server, answers]).toEqual([
      server,
      [
        expect.objectContaining({ action: 'accept', content: {} }),
        expect.objectContaining({ action: 'decline' }),
        expect.objectContaining({ action: 'decline' }),
      ],
    ])
  }
  expect(servers.events.filter(({ kind }) => kind === 'question.asked')).toEqual([])
})

test('a mode that is not known is refused with its reason', async () => {
  await using servers = await four({ handlers: { elicit: async () => ({ action: 'decline' }) } })
  await using binding = await servers.host.bind()
  expect(textIn(await callTool(binding, 'oldpipe/strange'))).toBe('-32602 invalid elicitation mode')
})

verifies('conn.124', async () => {
  const { host } = await hostOf([scripted('a', { tools: TOOLS }), scripted('b', { tools: TOOLS })])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  // Both processes number their requests alike.
  const calls = [callTool(binding, 'a/form'), callTool(binding, 'b/form')]
  const [one, other] = await questionsOf(host, 2)
  expect(one?.id).not.toBe(other?.id)
  for (const { id, server } of [other, one] as PendingQuestion[])
    host.answer(id, { action: 'accept', content: { name: `of ${server}` } })
  const answers = (await Promise.all(calls)).map((outcome) => JSON.parse(textIn(outcome)) as object)
  expect(answers).toEqual([
    expect.objectContaining({ content: { name: 'of a' } }),
    expect.objectContaining({ content: { name: 'of b' } }),
  ])
  expect(host.questions()).toEqual([])
})

test('a question is gone with its call, with its connection and with its host', async () => {
  const { host, events } = await hostOf([scripted('s', { tools: TOOLS }), scripted('t', { tools: TOOLS })])
  await host.whenSettled()
  const binding = await host.bind()
  const cancelling = new AbortController()
  const cancelled = callTool(binding, 's/form', {}, { signal: cancelling.signal })
  await questionsOf(host, 1)
  const settled = eventOf(host, 'question.settled')
  cancelling.abort()
  expect((await cancelled).kind).toBe('cancelled')
  await settled
  expect(host.questions()).toEqual([])
  const lost = callTool(binding, 's/form')
  const other = callTool(binding, 't/form')
  await questionsOf(host, 2)
  await binding[Symbol.asyncDispose]()
  const withdrawn = eventOf(host, 'question.settled')
  await host.reconnect('s')
  await withdrawn
  expect((await lost).kind).not.toBe('result')
  expect(host.questions().map(({ server }) => server)).toEqual(['t'])
  await host.close()
  expect((await other).kind).not.toBe('result')
  expect(host.questions()).toEqual([])
  expect(events.filter(({ kind }) => kind === 'question.settled')).toHaveLength(3)
})

verifies('conn.039', async () => {
  const { host } = await hostOf([scripted('s', { tools: TOOLS })], {
    handlers: { elicit: async () => ({ action: 'cancel' }) },
  })
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  const { pid } = await seenBy(old, 's')
  const actions: unknown[] = []
  for (const trust of [NEVER, FULL, ASK]) {
    host.replaceTrust({ trust })
    await host.refresh()
    // The connection that was there before the change, and what was captured from it.
    actions.push((JSON.parse(textIn(await callTool(old, 's/empty'))) as { action: string }).action)
  }
  expect(actions).toEqual(['decline', 'accept', 'cancel'])
  await using now = await host.bind()
  expect((await seenBy(now, 's')).pid).toBe(pid)
})

verifies('conn.130', async () => {
  const s = scripted('s', { tools: TOOLS })
  const t = scripted('t', { tools: TOOLS })
  const { host } = await hostOf([s, t], { trust: FULL })
  await using _ = host
  await host.whenSettled()
  await using old = await host.bind()
  const { pid } = await seenBy(old, 's')
  const action = async (server: string): Promise<unknown> =>
    (JSON.parse(textIn(await callTool(old, `${server}/empty`))) as { action: string }).action
  expect([await action('s'), await action('t')]).toEqual(['accept', 'accept'])
  host.replaceTrust({ trust: FULL, trustOf: { s: NEVER } })
  expect([await action('s'), await action('t')]).toEqual(['decline', 'accept'])
  host.replaceTrust({ trust: FULL })
  await host.configure([{ ...s, enabled: false }, t])
  expect([await action('s'), await action('t')]).toEqual(['decline', 'accept'])
  await host.configure([{ ...s, toolTimeoutMs: 60_000 }, t])
  expect(await action('s')).toBe('accept')
  await host.configure([t])
  // The old binding still speaks to the old process; its questions obey what holds now.
  expect([await action('s'), await action('t')]).toEqual(['decline', 'accept'])
  expect((await seenBy(old, 's')).pid).toBe(pid)
  expect(host.questionOutcomes.at(-2)).toMatchObject({ server: 's', action: 'decline', reason: 'server-not-in-use' })
})

test('definitions that are refused change nobody’s questions', async () => {
  const s = scripted('s', { tools: TOOLS })
  const { host } = await hostOf([s], { trust: FULL })
  await using _ = host
  await host.whenSettled()
  await expect(host.configure([], { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
  await using binding = await host.bind()
  expect(JSON.parse(textIn(await callTool(binding, 's/empty')))).toMatchObject({ action: 'accept' })
})

test('a connection of somebody else is under the same trust', async () => {
  const { host } = await hostOf([scripted('s', { tools: TOOLS })], { trust: FULL })
  await using _ = host
  await host.whenSettled()
  let asked = 0
  await using own = await host.openDedicated('s', {
    capabilities: { elicitation: {} },
    handlers: {
      'elicitation/create': async () => {
        asked += 1
        return { action: 'accept', content: { name: 'x' } }
      },
    },
  })
  const call = async (name: string): Promise<unknown> => {
    const { content } = await own.request('tools/call', { name, arguments: {} })
    return JSON.parse(String((content as { text: string }[])[0]?.text))
  }
  expect([await call('empty'), await call('form')]).toEqual([
    expect.objectContaining({ action: 'accept', content: {} }),
    expect.objectContaining({ action: 'decline' }),
  ])
  expect(asked).toBe(0)
  host.replaceTrust({ trust: ASK })
  expect(await call('form')).toMatchObject({ action: 'accept', content: { name: 'x' } })
  const ofTheCall = await own.request(
    'tools/call',
    { name: 'form', arguments: {} },
    { handlers: { 'elicitation/create': async () => ({ action: 'cancel' }) } },
  )
  expect(JSON.stringify(ofTheCall)).toContain('cancel')
  host.replaceTrust({ trust: NEVER })
  const declined = await own.request(
    'tools/call',
    { name: 'form', arguments: {} },
    { handlers: { 'elicitation/create': async () => ({ action: 'cancel' }) } },
  )
  expect(JSON.stringify(declined)).toContain('decline')
  expect(asked).toBe(1)
})
