// What becomes of a question: the rules, and the questions of one host without any server.
import { nodePlatform, type ServerDefinition, type ServerRequestContext } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { matchAnswer, readAnswer, readReview } from '../src/elicitation/answer.ts'
import { formFault } from '../src/elicitation/form.ts'
import {
  type AskCallback,
  DEFAULT_TRUST,
  decideElicitation,
  Elicitation,
  type ElicitationAuthority,
  type ElicitationInit,
  type TrustPolicy,
} from '../src/elicitation/index.ts'
import { QUESTION_BYTES_MAX, readQuestion } from '../src/elicitation/read-question.ts'
import type { HostEvent, PendingQuestion, QuestionOutcome } from '../src/events/index.ts'
import { HostTrust } from '../src/host-trust.ts'
import { scripted } from './support.ts'

const ASK: TrustPolicy = DEFAULT_TRUST
const NEVER: TrustPolicy = { approvals: 'never', fullAccess: false }
const FULL: TrustPolicy = { approvals: 'never', fullAccess: true }
const ASK_FULL: TrustPolicy = { approvals: 'ask', fullAccess: true }
const granular = (mcpElicitations: boolean, fullAccess = false): TrustPolicy => ({
  approvals: { mcpElicitations },
  fullAccess,
})

const empty = { mode: 'form', fieldCount: 0, asksForApproval: false } as const
const fields = { mode: 'form', fieldCount: 2, asksForApproval: false } as const
const approval = { mode: 'form', fieldCount: 2, asksForApproval: true } as const
const address = { mode: 'url', fieldCount: 0, asksForApproval: false } as const
const open = { declinesAll: false, surfaceForms: false, hasReviewer: false }
const shown = { ...open, surfaceForms: true }
const reviewed = { ...open, hasReviewer: true }

function decided(
  question: Parameters<typeof decideElicitation>[0],
  trust: TrustPolicy | undefined,
  policy: typeof open = open,
): string {
  const { kind, reason } = decideElicitation(question, { ...policy, trust })
  return `${kind}: ${reason}`
}

verifies('conn.114', () => {
  const table = [
    [fields, NEVER, open, 'decline: approvals-never'],
    [empty, NEVER, open, 'decline: approvals-never'],
    [address, NEVER, open, 'decline: approvals-never'],
    [fields, granular(false), open, 'decline: approvals-without-servers'],
    [address, granular(false), open, 'decline: approvals-without-servers'],
    [fields, ASK, open, 'ask: person-decides'],
    [empty, ASK, open, 'ask: person-decides'],
    [approval, ASK, open, 'ask: person-decides'],
    [address, ASK, open, 'ask: person-decides'],
    [fields, granular(true), open, 'ask: person-decides'],
    [fields, ASK, reviewed, 'review: reviewer-first'],
    [fields, granular(true), reviewed, 'review: reviewer-first'],
    [fields, NEVER, reviewed, 'decline: approvals-never'],
    [fields, granular(false), reviewed, 'decline: approvals-without-servers'],
    [fields, undefined, reviewed, 'decline: server-not-in-use'],
    [empty, undefined, open, 'decline: server-not-in-use'],
  ] as const
  for (const [question, trust, policy, outcome] of table)
    expect([question, trust, decided(question, trust, policy)]).toEqual([question, trust, outcome])
})

verifies('conn.115', () => {
  const table = [
    [empty, FULL, open, 'accept-empty: empty-form-under-full-access'],
    [empty, FULL, reviewed, 'accept-empty: empty-form-under-full-access'],
    [fields, FULL, open, 'decline: approvals-never'],
    [fields, FULL, reviewed, 'decline: approvals-never'],
    // An address is a person's to accept.
    [address, FULL, open, 'decline: approvals-never'],
    [address, FULL, shown, 'decline: approvals-never'],
    // Where a person is asked for approvals, full access decides nothing.
    [empty, ASK_FULL, open, 'ask: person-decides'],
    [empty, granular(true, true), open, 'ask: person-decides'],
    [empty, granular(false, true), open, 'decline: approvals-without-servers'],
  ] as const
  for (const [question, trust, policy, outcome] of table)
    expect([question, trust, decided(question, trust, policy)]).toEqual([question, trust, outcome])
})

verifies('conn.116', () => {
  for (const question of [empty, fields, approval, address])
    for (const trust of [FULL, ASK, granular(true), undefined])
      expect(decided(question, trust, { ...shown, hasReviewer: true, declinesAll: true })).toBe(
        'decline: everything-is-declined',
      )
})

const signalOf = (signal?: AbortSignal): ServerRequestContext => ({
  method: 'elicitation/create',
  signal: signal ?? new AbortController().signal,
})

const form = (properties: object = { name: { type: 'string' } }, more: object = {}): Record<string, unknown> => ({
  message: 'What is your name?',
  requestedSchema: { type: 'object', properties },
  ...more,
})

interface Desk {
  readonly elicitation: Elicitation
  readonly events: HostEvent[]
  readonly outcomes: () => string[]
  ask(params?: object, more?: { signal?: AbortSignal; server?: string; ask?: AskCallback }): Promise<unknown>
}

function desk(policy: Partial<ElicitationAuthority> = {}, init: Partial<ElicitationInit> = {}): Desk {
  const events: HostEvent[] = []
  const elicitation = new Elicitation({
    policy: { trust: ASK, ...policy },
    platform: nodePlatform,
    emit: (event) => events.push(event),
    ...init,
  })
  return {
    elicitation,
    events,
    outcomes: () => elicitation.outcomes.map(({ server, action, by, reason }) => `${server} ${action} ${by} ${reason}`),
    async ask(params = form(), { signal, server = 's', ask } = {}) {
      const handlers =
        ask === undefined ? elicitation.handlersFor(server) : elicitation.judge(server, { 'elicitation/create': ask })
      return handlers['elicitation/create']?.(params as Record<string, unknown>, signalOf(signal))
    },
  }
}

function onlyQuestion(elicitation: Elicitation): PendingQuestion {
  const [question, ...others] = elicitation.questions()
  if (question === undefined || others.length > 0) throw new Error(`${others.length} others`)
  return question
}

/** Resolves when the promise has settled or `turns` turns of the loop are over; says which. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const marker = {}
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  return (await Promise.race([promise.catch(() => undefined), Promise.resolve(marker)])) === marker
}

verifies('conn.117', async () => {
  const meta = {
    'convoke/approval': true,
    'convoke/reviewed': 'yes',
    codex_approval_kind: 'tool_suggestion',
    'codex/strict': true,
    progressToken: 7,
    'vendor/own': { kept: true },
    _codex_apps: { call_id: 'c' },
  }
  let seen: unknown
  let told: PendingQuestion | undefined
  const { ask, events } = desk(
    {},
    {
      handlers: {
        elicit: async (params, { question }) => {
          seen = params['_meta']
          told = question
          return { action: 'decline' }
        },
      },
    },
  )
  expect(await ask(form({}, { _meta: meta }))).toEqual({ action: 'decline' })
  expect(seen).toEqual({ 'vendor/own': { kept: true }, _codex_apps: { call_id: 'c' } })
  expect(told?.asksForApproval).toBe(true)
  expect(JSON.stringify(events)).not.toMatch(/convoke\/|codex_approval_kind|codex\/strict/)
})

verifies('conn.118', async () => {
  let reviews = 0
  const { ask, outcomes } = desk(
    {
      trust: FULL,
      surfaceForms: true,
      reviewer: async () => {
        reviews += 1
        return undefined
      },
    },
    { handlers: { elicit: async () => ({ action: 'accept', content: { name: 'Ada' } }) } },
  )
  for (const more of [{}, { _meta: { 'vendor/own': 1 } }])
    expect(await ask(form(undefined, more))).toEqual({ action: 'accept', content: { name: 'Ada' } })
  expect(reviews).toBe(0)
  expect(await ask(form({}))).toEqual({ action: 'accept', content: {} })
  expect(outcomes()).toEqual([
    's accept ask answered',
    's accept ask answered',
    's accept policy empty-form-under-full-access',
  ])
})

verifies('conn.119', async () => {
  expect(decided(approval, FULL)).toBe('decline: approval-under-full-access')
  expect(decided(approval, FULL, shown)).toBe('decline: approval-under-full-access')
  expect(decided({ ...empty, asksForApproval: true }, FULL)).toBe('decline: approval-under-full-access')
  const { ask, outcomes } = desk({ trust: FULL, surfaceForms: true }, { handlers: { elicit: async () => undefined } })
  for (const properties of [{}, undefined])
    expect(await ask(form(properties, { _meta: { codex_approval_kind: 'mcp_tool_call' } }))).toEqual({
      action: 'decline',
    })
  expect(outcomes()).toEqual(Array(2).fill('s decline policy approval-under-full-access'))
})

verifies('conn.120', () => {
  expect(decided(fields, FULL, shown)).toBe('ask: form-shown-under-full-access')
  expect(decided(fields, NEVER, shown)).toBe('decline: approvals-never')
  expect(decided(fields, granular(false, true), shown)).toBe('decline: approvals-without-servers')
  expect(decided(fields, granular(false), shown)).toBe('decline: approvals-without-servers')
})

verifies('conn.121', async () => {
  const reviews: string[] = []
  const asked: unknown[] = []
  const { ask, outcomes } = desk(
    {
      reviewer: async ({ message, asksForApproval }) => {
        reviews.push(`${message} ${asksForApproval}`)
        return undefined
      },
    },
    {
      handlers: {
        elicit: async (params) => {
          asked.push(params['message'])
          return { action: 'accept', content: {} }
        },
      },
    },
  )
  const question = form({}, { _meta: { codex_approval_kind: 'mcp_tool_call' } })
  expect(await ask(question)).toEqual({ action: 'accept', content: {} })
  expect(reviews).toEqual(['What is your name? true'])
  expect(asked).toEqual(['What is your name?'])
  expect(outcomes()).toEqual(['s accept ask answered'])
})

verifies('conn.122', async () => {
  const { elicitation, ask, events } = desk()
  expect(elicitation.offers).toEqual({ elicitation: undefined, sampling: false, roots: false })
  expect(Object.keys(elicitation.handlersFor('s'))).toEqual(['elicitation/create'])
  const answer = ask()
  expect(await isPending(answer)).toBe(true)
  const { id, expiresAtMs, ...question } = onlyQuestion(elicitation)
  expect(question).toEqual({
    server: 's',
    mode: 'form',
    message: 'What is your name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
    secretFields: [],
    asksForApproval: false,
    askedAtMs: expect.any(Number),
  })
  expect((expiresAtMs ?? 0) - question.askedAtMs).toBeGreaterThanOrEqual(600_000)
  expect(events).toEqual([{ kind: 'question.asked', question: onlyQuestion(elicitation) }])
  elicitation.answer(id, { action: 'accept', content: { name: 'Ada' } })
  expect(await answer).toEqual({ action: 'accept', content: { name: 'Ada' } })
  expect(elicitation.questions()).toEqual([])
  expect(events.at(-1)).toEqual({
    kind: 'question.settled',
    outcome: { id, server: 's', mode: 'form', action: 'accept', by: 'answer', reason: 'answered' },
  })
  expect(JSON.stringify(events)).not.toContain('Ada')
})

test('a parked question is cancelled when its time is over', async () => {
  const { ask, elicitation, outcomes } = desk({}, { limits: { parkedMsMax: 20 } })
  expect(await ask()).toEqual({ action: 'cancel' })
  expect(elicitation.questions()).toEqual([])
  expect(outcomes()).toEqual(['s cancel time parked-too-long'])
})

test('what the callback cannot show stays open for an answer', async () => {
  const { ask, elicitation, events } = desk({}, { handlers: { elicit: async () => undefined } })
  const answer = ask()
  expect(await isPending(answer)).toBe(true)
  elicitation.answer(onlyQuestion(elicitation).id, { action: 'decline' })
  expect(await answer).toEqual({ action: 'decline' })
  expect(events.map(({ kind }) => kind)).toEqual(['question.asked', 'question.asked', 'question.settled'])
})

test('an answer from elsewhere ends what the callback still shows', async () => {
  let isAborted = false
  const { ask, elicitation } = desk(
    {},
    {
      handlers: {
        elicit: (_params, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              isAborted = true
              resolve({ action: 'accept', content: { name: 'late' } })
            })
          }),
      },
    },
  )
  const answer = ask()
  expect(await isPending(answer)).toBe(true)
  elicitation.answer(onlyQuestion(elicitation).id, { action: 'cancel' })
  expect(await answer).toEqual({ action: 'cancel' })
  expect(isAborted).toBe(true)
  expect(elicitation.outcomes).toHaveLength(1)
})

verifies('conn.123', async () => {
  const { ask, elicitation } = desk({ trust: NEVER })
  const answers: Promise<unknown>[] = []
  for (let round = 0; round < 1_000; round++) {
    // Half of the one and half of the other would be an automatic yes.
    elicitation.replacePolicy({ trust: round % 2 === 0 ? ASK_FULL : NEVER })
    answers.push(ask(form({})))
    if (round % 3 === 0) await Promise.resolve()
  }
  elicitation.replacePolicy({ trust: NEVER })
  const actions = new Set((await Promise.all(answers)).map((answer) => (answer as { action: string }).action))
  expect([...actions]).toEqual(['decline'])
  expect(elicitation.questions()).toEqual([])
})

test('a policy that declines ends what is open under the one before, also while it is reviewed', async () => {
  const { ask, elicitation, outcomes } = desk({
    reviewer: ({ server }) => (server === 'r' ? new Promise(() => {}) : Promise.resolve(undefined)),
  })
  const [parked, reviewing] = [ask(), ask(form(), { server: 'r' })]
  expect(await isPending(Promise.all([parked, reviewing]))).toBe(true)
  expect(elicitation.questions().map(({ server }) => server)).toEqual(['s'])
  elicitation.replacePolicy({ trust: FULL })
  expect(await Promise.all([parked, reviewing])).toEqual([{ action: 'decline' }, { action: 'decline' }])
  expect(outcomes()).toEqual(['s decline policy approvals-never', 'r decline policy approvals-never'])
})

test('declining everything ends what is open and what comes, until it is switched off', async () => {
  const { ask, elicitation } = desk()
  const first = ask()
  expect(await isPending(first)).toBe(true)
  elicitation.declineAll(true)
  expect(await Promise.all([first, ask()])).toEqual([{ action: 'decline' }, { action: 'decline' }])
  elicitation.declineAll(false)
  const later = ask()
  expect(await isPending(later)).toBe(true)
  elicitation.close()
  expect(await later).toEqual({ action: 'cancel' })
  expect(await ask()).toEqual({ action: 'decline' })
})

verifies('conn.125', async () => {
  const { ask, elicitation, outcomes } = desk()
  const cancelling = new AbortController()
  const [mine, other] = [ask(form(), { signal: cancelling.signal }), ask(form(), { server: 'other' })]
  expect(await isPending(Promise.all([mine, other]))).toBe(true)
  const [first, second] = elicitation.questions()
  cancelling.abort()
  // At once, not after a turn of the loop.
  expect(elicitation.questions().map(({ server }) => server)).toEqual(['other'])
  expect(() => elicitation.answer(String(first?.id), { action: 'decline' })).toThrow(
    expect.objectContaining({ code: 'QUESTION_UNKNOWN' }),
  )
  elicitation.answer(String(second?.id), { action: 'accept', content: { name: 'Ada' } })
  expect(await other).toEqual({ action: 'accept', content: { name: 'Ada' } })
  expect(await mine).toEqual({ action: 'cancel' })
  expect(await ask(form(), { signal: AbortSignal.abort() })).toEqual({ action: 'cancel' })
  expect(elicitation.questions()).toEqual([])
  expect(outcomes()).toContain('s none server request-over')
})

verifies('conn.126', async () => {
  const { ask, elicitation, outcomes } = desk(
    {},
    {
      handlers: {
        elicit: async () => {
          throw new Error('the window of /home/secret is gone')
        },
      },
    },
  )
  await expect(ask()).rejects.toMatchObject({
    details: { rpc: { code: -32603, message: 'The client could not answer' } },
  })
  expect(elicitation.questions()).toEqual([])
  expect(outcomes()).toEqual(['s none ask ask-failed'])
})

test('what the callback answers has the shape of an answer, or the question fails', async () => {
  for (const given of [
    {},
    { action: 'yes' },
    { action: 'accept', content: [] },
    { action: 'accept', _meta: 'x' },
    7,
    null,
  ]) {
    const { ask } = desk({}, { handlers: { elicit: async () => given as never } })
    await expect(ask(), JSON.stringify(given)).rejects.toMatchObject({ details: { rpc: { code: -32603 } } })
  }
  const { ask } = desk(
    {},
    { handlers: { elicit: async () => ({ action: 'decline', content: { a: 1 }, extra: 1, _meta: { a: 1 } }) } },
  )
  expect(await ask()).toEqual({ action: 'decline', _meta: { a: 1 } })
})

verifies('conn.127', async () => {
  const asked: string[] = []
  const reviews: string[] = []
  const elicit: AskCallback = async (_params, { question }) => {
    asked.push(question.id)
    return { action: 'accept', content: { name: 'x' } }
  }
  const reviewer = async ({ server }: PendingQuestion): Promise<{ action: 'decline' }> => {
    reviews.push(server)
    return { action: 'decline' }
  }
  const { ask, elicitation, events } = desk({ reviewer }, { handlers: { elicit } })
  expect(await ask()).toEqual({ action: 'decline' })
  expect(reviews).toEqual(['s'])
  elicitation.replacePolicy({ trust: NEVER, reviewer })
  expect(await ask()).toEqual({ action: 'decline' })
  elicitation.replacePolicy({ trust: ASK, reviewer })
  elicitation.declineAll(true)
  expect(await ask()).toEqual({ action: 'decline' })
  expect([reviews, asked]).toEqual([['s'], []])
  expect(events.filter(({ kind }) => kind === 'question.asked')).toEqual([])
})

verifies('conn.128', async () => {
  for (const action of ['decline', 'cancel'] as const) {
    const { ask, outcomes } = desk({ reviewer: async () => ({ action, _meta: { why: 'no' } }) })
    expect(await ask()).toEqual({ action, _meta: { why: 'no' } })
    expect(outcomes()).toEqual([`s ${action} reviewer reviewed`])
  }
})

verifies('conn.129', async () => {
  let asked = 0
  const handlers = {
    elicit: async () => {
      asked += 1
      return { action: 'accept', content: { name: 'x' } }
    },
  }
  const nonsense: unknown[] = [
    true,
    'accept',
    {},
    { action: 'approve' },
    { action: 'accept' },
    { action: 'accept', content: {} },
    { action: 'accept', content: { name: 7 } },
    { action: 'accept', content: { name: 'x', more: 1 } },
    { action: 'accept', content: { name: 'x' }, _meta: 'auto' },
    { action: 'decline', content: {} },
  ]
  for (const given of nonsense) {
    const { ask, outcomes } = desk({ reviewer: async () => given as never }, { handlers })
    await expect(ask(form(undefined, { requestedSchema: NAMED })), JSON.stringify(given)).rejects.toMatchObject({
      details: { rpc: { code: -32603 } },
    })
    expect(outcomes()).toEqual(['s none reviewer review-unusable'])
  }
  const failing = desk({ reviewer: () => Promise.reject(new Error('down')) }, { handlers })
  await expect(failing.ask()).rejects.toThrow('The client could not answer')
  const silent = desk({ reviewer: () => new Promise(() => {}) }, { handlers, limits: { reviewMsMax: 20 } })
  await expect(silent.ask()).rejects.toThrow('The client could not answer')
  const address = desk({ reviewer: async () => ({ action: 'accept' }) }, { handlers })
  await expect(address.ask({ mode: 'url', message: 'm', url: 'https://a.example/' })).rejects.toThrow()
  expect([failing, silent, address].map(({ outcomes }) => outcomes()[0])).toEqual([
    's none reviewer review-failed',
    's none reviewer review-timed-out',
    's none reviewer review-unusable',
  ])
  expect(asked).toBe(0)
  const right = desk({ reviewer: async () => ({ action: 'accept', content: { name: 'x' } }) }, { handlers })
  expect(await right.ask(form(undefined, { requestedSchema: NAMED }))).toEqual({
    action: 'accept',
    content: { name: 'x' },
  })
})

const NAMED = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }

test('a reviewer that answers too late answers nothing', async () => {
  let answerLate: ((answer: { action: 'accept'; content: object }) => void) | undefined
  const { ask, outcomes } = desk(
    { reviewer: () => new Promise((resolve) => (answerLate = resolve as never)) },
    { limits: { reviewMsMax: 20 } },
  )
  await expect(ask()).rejects.toThrow('The client could not answer')
  answerLate?.({ action: 'accept', content: { name: 'x' } })
  await isPending(Promise.resolve())
  expect(outcomes()).toEqual(['s none reviewer review-timed-out'])
})

test('a question under review is not to be answered yet', async () => {
  let id = ''
  const { ask, elicitation } = desk({
    reviewer: async (question) => {
      id = question.id
      expect(() => elicitation.answer(id, { action: 'accept', content: { name: 'x' } })).toThrow(
        expect.objectContaining({ code: 'QUESTION_UNKNOWN' }),
      )
      return { action: 'decline' }
    },
  })
  expect(await ask()).toEqual({ action: 'decline' })
  expect(id).toMatch(/^question-\d+-[0-9a-f]{18}$/)
})

test('a wrong answer is an error of whoever answers, and the question stays open', async () => {
  const { ask, elicitation } = desk()
  const answer = ask(form(undefined, { requestedSchema: NAMED }))
  await isPending(answer)
  const { id } = onlyQuestion(elicitation)
  const wrong: unknown[] = [
    undefined,
    {},
    { action: 'ok' },
    { action: 'accept' },
    { action: 'accept', content: { name: 1 } },
    { action: 'accept', content: { name: 'SECRET-VALUE', other: 'x' } },
    { action: 'cancel', content: { name: 'x' } },
    { action: 'accept', content: { name: 'x' }, _meta: [] },
  ]
  for (const given of wrong) {
    const failure = ((): unknown => {
      try {
        return elicitation.answer(id, given as never)
      } catch (error) {
        return error
      }
    })()
    expect(failure, JSON.stringify(given)).toMatchObject({ code: 'ANSWER_INVALID', details: { id, server: 's' } })
    expect(String((failure as Error).message)).not.toContain('SECRET-VALUE')
  }
  expect(elicitation.questions()).toHaveLength(1)
  elicitation.answer(id, { action: 'accept', content: { name: 'x' } })
  expect(() => elicitation.answer(id, { action: 'decline' })).toThrow(
    expect.objectContaining({ code: 'QUESTION_UNKNOWN' }),
  )
  expect(await answer).toEqual({ action: 'accept', content: { name: 'x' } })
})

test('questions have a limit in number, for each server and in all, and a place is free again when one ends', async () => {
  const { ask, elicitation, outcomes } = desk({}, { limits: { perServerMax: 2, questionsMax: 3 } })
  const full = { details: { rpc: { code: -32000, message: 'Too many questions are open' } } }
  const answers = [ask(), ask()]
  await isPending(Promise.all(answers))
  await expect(ask()).rejects.toMatchObject(full)
  answers.push(ask(form(), { server: 'b' }))
  await isPending(Promise.all(answers))
  await expect(ask(form(), { server: 'c' })).rejects.toMatchObject(full)
  elicitation.answer(String(elicitation.questions()[0]?.id), { action: 'decline' })
  answers.push(ask())
  expect(await isPending(Promise.all(answers))).toBe(true)
  expect(elicitation.questions()).toHaveLength(3)
  elicitation.declineAll(true)
  await Promise.all(answers)
  expect(outcomes().filter((one) => one.endsWith('too-many-questions'))).toHaveLength(2)
})

test('outcomes are kept up to a limit, the newest ones', async () => {
  const { ask, elicitation } = desk({ trust: NEVER })
  for (let count = 0; count < 300; count++) await ask(form(), { server: `s${count}` })
  expect(elicitation.outcomes).toHaveLength(256)
  expect((elicitation.outcomes as QuestionOutcome[]).at(-1)?.server).toBe('s299')
})

test('a server may be trusted in its own way', async () => {
  const { ask, elicitation, outcomes } = desk({ trust: NEVER, trustOf: { own: FULL }, servers: new Set(['s', 'own']) })
  expect(await ask(form({}), { server: 'own' })).toEqual({ action: 'accept', content: {} })
  for (const server of ['s', 'stranger', 'constructor'])
    expect(await ask(form({}), { server })).toEqual({ action: 'decline' })
  elicitation.replacePolicy({ trust: NEVER, trustOf: { own: FULL }, servers: new Set(['s']) })
  expect(await ask(form({}), { server: 'own' })).toEqual({ action: 'decline' })
  expect(outcomes()).toEqual([
    'own accept policy empty-form-under-full-access',
    's decline policy approvals-never',
    'stranger decline policy server-not-in-use',
    'constructor decline policy server-not-in-use',
    'own decline policy server-not-in-use',
  ])
})

test('a name that every object has is a name like any other', async () => {
  const { ask, outcomes } = desk({ trust: NEVER, trustOf: {} })
  expect(await ask(form({}), { server: 'constructor' })).toEqual({ action: 'decline' })
  expect(outcomes()).toEqual(['constructor decline policy approvals-never'])
})

test('a policy that does not decline leaves alone what is open', async () => {
  const { ask, elicitation } = desk()
  const answer = ask(form({}))
  expect(await isPending(answer)).toBe(true)
  for (const trust of [granular(true), ASK_FULL, FULL]) {
    elicitation.replacePolicy({ trust })
    // What a person was asked is theirs to answer, also where it would now be accepted without them.
    expect([await isPending(answer), elicitation.questions().length]).toEqual([true, 1])
  }
  elicitation.close()
  expect(await answer).toEqual({ action: 'cancel' })
})

test('while definitions are replaced servers of both may ask, and afterwards those that were published last', async () => {
  const [one, two, three] = ['one', 'two', 'three'].map((name) => scripted(name)) as [
    ServerDefinition,
    ServerDefinition,
    ServerDefinition,
  ]
  const trust = new HostTrust({ definitions: [one], trust: FULL }, { platform: nodePlatform, emit: () => {} })
  const mayAsk = async (): Promise<string[]> => {
    const answers = ['one', 'two', 'three'].map(async (name) => {
      const answer = await trust.elicitation.handlersFor(name)['elicitation/create']?.(form({}), signalOf())
      return answer?.['action'] === 'accept' ? [name] : []
    })
    return (await Promise.all(answers)).flat()
  }
  let fail: ((error: Error) => void) | undefined
  const failing = trust.during([two], () => new Promise((_, reject) => (fail = reject)))
  expect(await mayAsk()).toEqual(['one', 'two'])
  await trust.during([three, { ...two, enabled: false }], async () => {
    expect(await mayAsk()).toEqual(['one', 'two', 'three'])
  })
  expect(await mayAsk()).toEqual(['three'])
  fail?.(new Error('not published'))
  await expect(failing).rejects.toThrow('not published')
  expect(await mayAsk()).toEqual(['three'])
  trust.close()
})

test('handlers of a call stand before those of the host, under the same policy', async () => {
  const { ask, elicitation } = desk(
    {},
    { handlers: { elicit: async () => ({ action: 'cancel' }), roots: async () => ({ roots: [] }) } },
  )
  const own: AskCallback = async () => ({ action: 'accept', content: { name: 'own' } })
  expect(await ask()).toEqual({ action: 'cancel' })
  expect(await ask(form(), { ask: own })).toEqual({ action: 'accept', content: { name: 'own' } })
  elicitation.replacePolicy({ trust: NEVER })
  expect(await ask(form(), { ask: own })).toEqual({ action: 'decline' })
  expect(elicitation.offers).toEqual({ elicitation: 'form-and-url', sampling: false, roots: true })
  const handlers = elicitation.judge('s', {
    'sampling/createMessage': async () => {
      throw new Error('the key is CANARY')
    },
  })
  // Nothing of the host answers for somebody else.
  expect(Object.keys(handlers)).toEqual(['sampling/createMessage'])
  expect(Object.keys(elicitation.handlersFor('s'))).toEqual(['elicitation/create', 'roots/list'])
  await expect(handlers['sampling/createMessage']?.({}, signalOf())).rejects.toThrow('The client could not answer')
})

test('it can be known beforehand whether a person would be asked', () => {
  const { elicitation, events } = desk({ trustOf: { off: NEVER, full: FULL } })
  expect(['s', 'off', 'full'].map((server) => elicitation.leavesToPerson(server, form()))).toEqual([true, false, false])
  expect(elicitation.leavesToPerson('s', { mode: 'x', message: 'm' })).toBe(false)
  elicitation.replacePolicy({ trust: ASK, reviewer: async () => undefined })
  expect(elicitation.leavesToPerson('s', form())).toBe(false)
  expect([events, elicitation.outcomes]).toEqual([[], []])
})

test('a reviewer alone is somebody who answers', () => {
  expect(desk({ reviewer: async () => undefined }).elicitation.offers.elicitation).toBe('form-and-url')
})

verifies('conn.131', () => {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string', default: 'Ada' }, age: { type: 'integer', default: 36 } },
  }
  const read = readQuestion({
    message: 'm',
    requestedSchema: schema,
    _meta: { progressToken: 1, 'vendor/context': { a: 1 }, plain: 'x' },
  })
  expect(read).toEqual({
    kind: 'question',
    content: { mode: 'form', message: 'm', requestedSchema: schema, secretFields: [], asksForApproval: false },
    params: { message: 'm', requestedSchema: schema, _meta: { 'vendor/context': { a: 1 }, plain: 'x' } },
    facts: { mode: 'form', fieldCount: 2, asksForApproval: false },
  })
  const plain = { message: 'm' }
  expect((readQuestion(plain) as { params: object }).params).toBe(plain)
  // A context of nothing but a token is none, and one without anything to remove is handed on as it is.
  expect(readQuestion({ message: 'm', _meta: { progressToken: 1 } })).toMatchObject({ params: { message: 'm' } })
  expect(
    Object.keys((readQuestion({ message: 'm', _meta: { progressToken: 1 } }) as { params: object }).params),
  ).toEqual(['message'])
  expect(Object.keys((readQuestion({ message: 'm', _meta: 'x' }) as { params: object }).params)).toEqual(['message'])
})

describe('readQuestion', () => {
  const deep = JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as unknown
  test.each([
    ['a mode that is not known', { mode: 'openai/form', message: 'm' }, 'invalid elicitation mode'],
    ['a mode that is no text', { mode: null, message: 'm' }, 'invalid elicitation mode'],
    ['no message', { requestedSchema: {} }, 'a question needs a message'],
    ['a schema that is none', { message: 'm', requestedSchema: 'x' }, 'requestedSchema is an object'],
    ['properties that are none', { message: 'm', requestedSchema: { properties: [] } }, 'every property has a schema'],
    [
      'a property without a schema',
      { message: 'm', requestedSchema: { properties: { a: true } } },
      'every property has a schema',
    ],
    ['required that is no list', { message: 'm', requestedSchema: { required: 'a' } }, 'required is a list of names'],
    ['required with strangers', { message: 'm', requestedSchema: { required: [1] } }, 'required is a list of names'],
    [
      'too many bytes',
      { message: 'é'.repeat(QUESTION_BYTES_MAX / 2) },
      `a question has at most ${QUESTION_BYTES_MAX} bytes`,
    ],
    [
      'too deep',
      { message: 'm', requestedSchema: { properties: { a: { x: deep } } } },
      'a question is not nested deeper than 100 levels',
    ],
    ['no address', { mode: 'url', message: 'm' }, 'a question of mode url needs an address'],
  ] as [string, Record<string, unknown>, string][])('refuses %s', (_what, params, why) => {
    expect(readQuestion(params)).toEqual({ kind: 'refused', mode: params['mode'] === 'url' ? 'url' : 'form', why })
  })

  test.each([
    '',
    '/a',
    `https://a.example/${'x'.repeat(8_200)}`,
    'javascript:alert(1)',
    'file:///etc/passwd',
    'ws://localhost/',
    'http://192.168.0.5/',
    'http://localhost.evil.example/',
    'http://evil.localhost/',
    'http://a.example/?localhost',
    'https://:pw@a.example/',
    'https://user@a.example/',
    '-a Calculator',
  ])('sends nobody to %s', async (url) => {
    expect(readQuestion({ mode: 'url', message: 'm', url })).toEqual({ kind: 'unsafe', mode: 'url' })
    const { ask, outcomes } = desk({}, { handlers: { elicit: async () => ({ action: 'accept' }) } })
    expect(await ask({ mode: 'url', message: 'm', url })).toEqual({ action: 'decline' })
    expect(outcomes()).toEqual(['s decline policy unsafe-address'])
  })

  test('takes an address in its canonical form, and hidden characters out of what is shown', () => {
    expect(
      readQuestion({ mode: 'url', message: 'open\u200b me', url: 'HTTPS://A.example/x y', elicitationId: 'e\u202e1' }),
    ).toMatchObject({
      kind: 'question',
      content: {
        mode: 'url',
        message: 'open me',
        url: 'https://a.example/x%20y',
        elicitationId: 'e1',
        secretFields: [],
      },
      facts: { mode: 'url', fieldCount: 0 },
    })
    for (const host of ['localhost:1', '127.0.0.1', '[::1]:9'])
      expect(readQuestion({ mode: 'url', message: 'm', url: `http://${host}/` }).kind).toBe('question')
    expect(readQuestion({ message: 'm', requestedSchema: { properties: { a: { title: 'x\u200by' } } } })).toMatchObject(
      {
        content: { requestedSchema: { properties: { a: { title: 'xy' } } } },
      },
    )
  })

  test('names the fields that look like secrets, and counts those that are only required', () => {
    const properties = { api_key: { type: 'string' }, password: { type: 'string' }, city: { type: 'string' } }
    expect(readQuestion({ message: 'm', requestedSchema: { properties, required: ['city', 'more'] } })).toMatchObject({
      content: { secretFields: ['api_key', 'password'] },
      facts: { fieldCount: 4 },
    })
    expect(readQuestion({ message: 'm', requestedSchema: { required: ['more'] } })).toMatchObject({
      facts: { fieldCount: 1 },
    })
  })
})

test('a question that is malformed is refused with its reason, and told', async () => {
  const { ask, outcomes } = desk()
  await expect(ask({ mode: 'openai/form', message: 'm' })).rejects.toMatchObject({
    details: { rpc: { code: -32602, message: 'invalid elicitation mode' } },
  })
  expect(outcomes()).toEqual(['s none policy malformed'])
})

describe('formFault', () => {
  const field = (schema: object, value: unknown): string | undefined =>
    formFault({ properties: { f: schema } }, { f: value })
  test.each([
    [{ type: 'string' }, 'x', undefined],
    [{ type: 'string' }, 1, 'is a text'],
    [{ type: 'string', minLength: 2 }, 'é', 'has at least 2 characters'],
    [{ type: 'string', minLength: 2 }, 'éé', undefined],
    [{ type: 'string', maxLength: 1 }, '😀', undefined],
    [{ type: 'string', maxLength: 1 }, 'ab', 'has at most 1 characters'],
    [{ type: 'string', pattern: '^(a+)+$' }, 'b', undefined],
    [{ type: 'number' }, 1.5, undefined],
    [{ type: 'number' }, '1', 'is a number'],
    [{ type: 'number' }, Number.NaN, 'is a number'],
    [{ type: 'number', minimum: 2 }, 1.9, 'is at least 2'],
    [{ type: 'number', minimum: 2, maximum: 2 }, 2, undefined],
    [{ type: 'number', maximum: 2 }, 2.1, 'is at most 2'],
    [{ type: 'integer' }, 2, undefined],
    [{ type: 'integer' }, 2.5, 'is a whole number'],
    [{ type: 'integer' }, '2', 'is a whole number'],
    [{ type: 'integer', maximum: 1 }, 2, 'is at most 1'],
    [{ type: 'boolean' }, false, undefined],
    [{ type: 'boolean' }, 0, 'is true or false'],
    [{ type: 'string', enum: ['a', 'b'] }, 'b', undefined],
    [{ type: 'string', enum: ['a', 'b'] }, 'c', 'is not one of its choices'],
    [{ type: 'string', oneOf: [{ const: 'a', title: 'A' }] }, 'a', undefined],
    [{ type: 'string', oneOf: [{ const: 'a', title: 'A' }] }, 'b', 'is not one of its choices'],
    [{ type: 'array', items: { type: 'string', enum: ['a'] } }, ['a'], undefined],
    [{ type: 'array', items: { anyOf: [{ const: 'a' }] } }, ['b'], 'has a member that is not one of its choices'],
    [{ type: 'array', items: { type: 'string' } }, [1], 'has a member that is a text'],
    [{ type: 'array' }, [1], undefined],
    [{ type: 'array' }, 'a', 'is a list'],
    [{ type: 'array', minItems: 1 }, [], 'has at least 1 members'],
    [{ type: 'array', maxItems: 1 }, [1, 2], 'has at most 1 members'],
    [{ type: 'vendor' }, { any: 1 }, undefined],
    [{ anyOf: [{ type: 'string' }] }, 1, undefined],
  ])('%o with %j: %s', (schema, value, fault) => {
    expect(field(schema, value)).toBe(fault === undefined ? undefined : `the field "f" ${fault}`)
  })

  test('demands what is required and takes nothing that was not asked for', () => {
    const schema = { properties: { a: { type: 'string' } }, required: ['a'] }
    expect(formFault(schema, {})).toBe('the field "a" is required')
    expect(formFault(schema, { a: 'x', b: 1 })).toBe('the form has no field "b"')
    expect(formFault({}, { constructor: 1 })).toBe('the form has no field "constructor"')
    expect(formFault({ ...schema, required: [7] }, {})).toBeUndefined()
    expect(formFault({}, JSON.parse('{"__proto__":"x"}') as Record<string, unknown>)).toBe(
      'the form has no field "__proto__"',
    )
    expect(formFault(schema, { a: 'x' })).toBeUndefined()
  })
})

describe('answers', () => {
  const url = {
    mode: 'url',
    message: 'm',
    url: 'https://a.example/',
    secretFields: [],
    asksForApproval: false,
  } as const
  const named = {
    mode: 'form',
    message: 'm',
    requestedSchema: NAMED,
    secretFields: [],
    asksForApproval: false,
  } as const

  test('to an address have no content', () => {
    expect(matchAnswer({ action: 'accept' }, url)).toEqual({ kind: 'answer', answer: { action: 'accept' } })
    expect(matchAnswer({ action: 'accept', content: {} }, url)).toMatchObject({ kind: 'wrong' })
    expect(readReview({ action: 'accept' }, url)).toMatchObject({ kind: 'wrong' })
    expect(readReview({ action: 'decline' }, url)).toMatchObject({ kind: 'answer' })
  })

  test('to an empty form may leave the content away', () => {
    const blank = { ...named, requestedSchema: { properties: {} } }
    expect(matchAnswer({ action: 'accept' }, blank)).toEqual({
      kind: 'answer',
      answer: { action: 'accept', content: {} },
    })
  })

  test('of a reviewer may be none', () => {
    for (const none of [undefined, null]) expect(readReview(none, named)).toEqual({ kind: 'open' })
    expect(readReview(false, named)).toMatchObject({ kind: 'wrong' })
  })

  test('have an action, and objects where they have content or context', () => {
    expect(readAnswer({ action: 'accept', content: { a: 1 }, _meta: { b: 1 }, more: 1 })).toEqual({
      kind: 'answer',
      answer: { action: 'accept', content: { a: 1 }, _meta: { b: 1 } },
    })
    for (const wrong of [
      undefined,
      [],
      { action: 'x' },
      { action: 'accept', content: 1 },
      { action: 'cancel', _meta: null },
    ])
      expect([wrong, readAnswer(wrong).kind]).toEqual([wrong, 'wrong'])
  })
})
