// Steps: what they show, what they tell of the world, and the calls that come of them.
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { type ConsentFacts, decideConsent } from '../src/turn/consent.ts'
import { scripted, seenBy } from './support.ts'
import { extension, hostWith, stepTool } from './turn-support.ts'

verifies('turn.008', () => {
  const ask = { approvals: 'ask', fullAccess: false } as const
  const never = { approvals: 'never', fullAccess: false } as const
  const full = { approvals: 'never', fullAccess: true } as const
  const reads = { readOnly: true }
  const rows: readonly [string, Partial<ConsentFacts>, string][] = [
    ['approve', { mode: 'approve' }, 'allowed'],
    ['approve, destructive', { mode: 'approve', hints: { destructive: true } }, 'allowed'],
    ['prompt', { mode: 'prompt', hints: reads }, 'ask'],
    ['prompt, approved before', { mode: 'prompt', isRemembered: true }, 'ask'],
    ['writes, nothing said', { mode: 'writes' }, 'ask'],
    ['writes, reads', { mode: 'writes', hints: reads }, 'allowed'],
    ['writes, reads and destroys nothing', { mode: 'writes', hints: { destructive: false } }, 'ask'],
    ['auto, nothing said', {}, 'ask'],
    ['auto, reads', { hints: reads }, 'allowed'],
    ['auto, reads an open world', { hints: { readOnly: true, openWorld: true } }, 'allowed'],
    ['auto, reads and destroys', { hints: { readOnly: true, destructive: true } }, 'ask'],
    ['auto, destroys nothing', { hints: { destructive: false } }, 'ask'],
    ['auto, destroys nothing in a closed world', { hints: { destructive: false, openWorld: false } }, 'allowed'],
    ['auto, a closed world', { hints: { openWorld: false } }, 'ask'],
    ['approved before', { isRemembered: true }, 'allowed'],
    ['nobody may be asked', { trust: never }, 'denied'],
    ['nobody may be asked, approved before', { trust: never, isRemembered: true }, 'denied'],
    ['nobody may be asked, and it needs nothing', { trust: never, mode: 'approve' }, 'allowed'],
    ['full access', { trust: full, mode: 'prompt' }, 'allowed'],
    ['full access, and people are asked', { trust: { approvals: 'ask', fullAccess: true } }, 'ask'],
    ['servers may not ask, tools do', { trust: { approvals: { mcpElicitations: false }, fullAccess: true } }, 'ask'],
  ]
  const facts: ConsentFacts = { mode: 'auto', hints: undefined, trust: ask, isRemembered: false }
  for (const [what, more, kind] of rows) expect([what, decideConsent({ ...facts, ...more }).kind]).toEqual([what, kind])
})

verifies(['turn.009', 'turn.022'], async () => {
  const told: string[] = []
  const reviewed: string[] = []
  let asked: readonly string[] = []
  let answer: 'approved' | 'approved-for-thread' | 'denied' | 'aborted' = 'denied'
  const observer = {
    onToolStart: (input: Record<string, unknown>) => void told.push(`start ${JSON.stringify(plain(input))}`),
    onToolFinish: ({ durationMs, ...input }: { durationMs: number; [key: string]: unknown }) => {
      expect(durationMs).toBeGreaterThanOrEqual(0)
      told.push(`finish ${JSON.stringify(plain(input))}`)
    },
  }
  const plain = ({ callId, tool, server, outcome, ...rest }: Record<string, unknown>): object => {
    expect(Object.keys(rest).sort()).toEqual(['session', 'step', 'thread', 'turn'])
    return { callId, tool, server, outcome }
  }
  const { host } = await hostWith(
    [scripted('one')],
    [
      extension({ toolLifecycle: observer as never }, 'observer'),
      extension({ approvalReview: { review: ({ tool }) => void reviewed.push(tool) } }, 'has-no-opinion'),
      extension(
        {
          approvalReview: {
            review: ({ arguments: args }) => (args['text'] === 'fine' ? { kind: 'approved' } : undefined),
          },
        },
        'knows',
      ),
    ],
  )
  await using _ = host
  await host.whenSettled()
  const thread = await host.thread({
    approve: async ({ tool, arguments: args, listed }) => {
      asked = [...asked, `${tool} ${JSON.stringify(args)} ${listed?.rawName}`]
      return { kind: answer }
    },
  })
  const turn = await thread.turn()
  const step = await turn.step()
  const echo = stepTool(step, 'one/echo')
  expect(await step.call(echo, { text: 'fine' }, { callId: 'c1' })).toMatchObject({ kind: 'called' })
  expect([asked, reviewed]).toEqual([[], ['one__echo']])
  expect(await step.call(echo, { text: 'no' }, { callId: 'c2' })).toEqual({
    kind: 'blocked',
    reason: 'the call was not approved',
  })
  expect(asked).toEqual(['one__echo {"text":"no"} echo'])
  answer = 'approved'
  expect(await step.call(echo, { text: 'a' })).toMatchObject({ kind: 'called' })
  answer = 'approved-for-thread'
  expect(await step.call(echo, { text: 'b' })).toMatchObject({ kind: 'called' })
  answer = 'denied'
  expect(await step.call(echo, { text: 'c' })).toMatchObject({ kind: 'called' })
  expect(asked).toHaveLength(3)
  // It was that tool that was approved.
  expect(await step.call(stepTool(step, 'one/fail'), {}, { callId: 'c3' })).toMatchObject({ kind: 'blocked' })
  expect((await seenBy(step.binding, 'one')).calls['fail']).toBeUndefined()
  expect(told.slice(0, 3)).toEqual([
    'start {"callId":"c1","tool":"one__echo","server":"one"}',
    'finish {"callId":"c1","tool":"one__echo","server":"one","outcome":"completed"}',
    'finish {"callId":"c2","tool":"one__echo","server":"one","outcome":"blocked"}',
  ])
  expect(told.join()).not.toMatch(/fine|"no"/)
  answer = 'aborted'
  expect(await step.call(stepTool(step, 'one/fail'), {})).toEqual({ kind: 'cancelled' })
  expect(turn.signal.aborted).toBe(true)
  await expect(turn.step()).rejects.toMatchObject({ code: 'CANCELLED' })
  // Nobody to ask.
  await using silent = await host.thread()
  const alone = await (await silent.turn()).step()
  expect(await alone.call(stepTool(alone, 'one/echo'), { text: 'x' })).toEqual({
    kind: 'blocked',
    reason: 'it needs a consent, and there is nobody to ask',
  })
  // Full access, for one thread.
  await using free = await host.thread({ trust: { approvals: 'never', fullAccess: true } })
  const open = await (await free.turn()).step()
  expect(await open.call(stepTool(open, 'one/echo'), { text: 'x' })).toMatchObject({ kind: 'called' })
})

verifies(['turn.011', 'turn.014'], async () => {
  const { host } = await hostWith([scripted('one')], {})
  await using _ = host
  await host.whenSettled()
  const thread = await host.thread({ approve: async () => ({ kind: 'approved' }) })
  const turn = await thread.turn()
  const step = await turn.step()
  const { tools } = step
  const late = step.call(stepTool(step, 'one/late'), { ms: 400 })
  const next = await turn.step()
  expect(next.tools).toBe(tools)
  expect(await step.call(stepTool(step, 'one/echo'), {})).toMatchObject({ kind: 'blocked' })
  await host.configure([])
  const after = await turn.step()
  expect([after.tools, step.tools]).toEqual([[], tools])
  // What was called goes on, with the connection that it was shown with.
  expect(await late).toMatchObject({ kind: 'called', outcome: { kind: 'ok' } })
  const [first] = tools
  if (first?.kind !== 'server') throw new Error('no tool')
  expect([step.find(first.name), step.find(first.namespaced), step.find('nobody')]).toEqual([first, first, undefined])
  await turn.complete()
})

verifies('turn.012', async () => {
  let sections = [
    { id: 'time', text: 'noon' },
    { id: 'place', text: 'here' },
  ]
  const { host } = await hostWith([], { context: { worldState: () => sections } })
  await using _ = host
  const thread = await host.thread()
  const turn = await thread.turn()
  const told = async (of = turn): Promise<unknown> => (await of.step()).worldState
  expect(await told()).toEqual({ changed: sections, removed: [] })
  expect(await told()).toEqual({ changed: [], removed: [] })
  sections = [
    { id: 'time', text: 'one' },
    { id: 'weather', text: 'rain' },
  ]
  expect(await told()).toEqual({ changed: sections, removed: ['place'] })
  // The next turn goes on where this one was.
  expect(await told(await thread.turn())).toEqual({ changed: [], removed: [] })
})

verifies('turn.013', async () => {
  const tool = (name: string, text = name) => ({
    name,
    description: name,
    inputSchema: { type: 'object' },
    run: async ({ fails }: { fails?: boolean }) => {
      if (fails === true) throw new Error('it broke')
      return { text }
    },
  })
  const tools = [tool('clock'), tool('bad__name'), tool('bad name'), tool('clock', 'another')]
  const many = Array.from({ length: 200 }, (_, index) => tool(`extra${index}`))
  const { host } = await hostWith(
    [scripted('one', { tools: 1 })],
    [
      extension({ tools: { tools: () => tools as never } }, 'a'),
      extension({ tools: { tools: () => many as never } }, 'b'),
    ],
  )
  await using _ = host
  await host.whenSettled()
  const step = await (await (await host.thread()).turn()).step()
  const names = step.tools.map(({ name }) => name)
  expect(names.slice(0, 3)).toEqual(['one__echo', 'clock', 'extra0'])
  expect(names).toHaveLength(129)
  const clock = step.find('clock')
  if (clock === undefined) throw new Error('no clock')
  expect(await step.call(clock, {})).toMatchObject({ kind: 'native', text: 'clock', isError: false })
  expect(await step.call(clock, { fails: true })).toMatchObject({ kind: 'native', text: 'it broke', isError: true })
})

verifies('turn.025', async () => {
  const tools = [
    { name: 'shown', inputSchema: { type: 'object' } },
    { name: 'app', inputSchema: { type: 'object' }, _meta: { ui: { visibility: ['app'] } } },
  ]
  const omitted = scripted('omitted', { tools }, { omitToolsFrom: ['model'] })
  const { host } = await hostWith([scripted('one', { tools }), omitted], {})
  await using _ = host
  await host.whenSettled()
  const turn = await (await host.thread()).turn()
  const names = async (): Promise<readonly string[]> => (await turn.step()).tools.map(({ name }) => name)
  expect(await names()).toEqual(['one__shown'])
  await host.configure([{ ...omitted, omitToolsFrom: ['gateway'] }])
  await host.whenSettled()
  expect(await names()).toEqual(['omitted__shown'])
})
