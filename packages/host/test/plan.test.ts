// What a generation decides about each connection, as tables: one row per rule, whole values compared.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { defineServer, type ServerDefinition } from '../src/config/index.ts'
import type { ConnectionState } from '../src/connection/index.ts'
import { type CaptureFacts, decideSource, decideWait } from '../src/set/decide.ts'
import { type DesiredConnection, desiredConnection } from '../src/set/desired.ts'
import type { ObservedConnection } from '../src/set/observe.ts'
import { type ConnectionPlan, type PlanPolicy, planConnection } from '../src/set/plan.ts'
import { type StartupOutcome, summarizeStartup } from '../src/set/startup-report.ts'

const definition = defineServer({
  name: 's',
  transport: { kind: 'stdio', command: 'x', args: [], env: {}, envVars: [] },
})
const identity = { configKey: 'c1', credentials: null } as const
const wanted: DesiredConnection = desiredConnection(definition, { identity, hasVisibleCachedTools: false }, 'all')
const ready: ObservedConnection = {
  identity,
  phase: 'ready',
  catalogItemLimit: wanted.catalogItemLimit,
  startupTimeoutMs: definition.startupTimeoutMs,
  installTimeoutMs: definition.installTimeoutMs,
  liveCredentials: undefined,
}
const POLICY: PlanPolicy = { reconnect: new Set(), retriesFailed: true }
const plan = (
  previous: Partial<ObservedConnection> | undefined,
  desired: Partial<DesiredConnection> = {},
  policy: Partial<PlanPolicy> = {},
): ConnectionPlan =>
  planConnection(previous && { ...ready, ...previous }, { ...wanted, ...desired }, { ...POLICY, ...policy })
const start = (because: string): object => ({ kind: 'start', because })
const defer = (because: string): object => ({ kind: 'defer', because })
const hold = (because: string): object => ({ kind: 'hold', because })
const REUSE = { kind: 'reuse', because: 'unchanged' }
const ADOPT = { kind: 'adopt', because: 'starting' }
const CACHED = { hasVisibleCachedTools: true } as const
const speakingAs = (credentials: string | null | undefined, isContended = false): object => ({
  identity: { configKey: 'c1', credentials, isContended },
})

describe('what is started, and what may sleep', () => {
  test.each([
    ['starts what is new', plan(undefined), start('no-previous')],
    ['lets a new one sleep whose tools are known', plan(undefined, CACHED), defer('cached')],
    [
      'starts an eager one although its tools are known',
      plan(undefined, { ...CACHED, start: 'eager' }),
      start('no-previous'),
    ],
    [
      'starts one of a selected plugin although its tools are known',
      plan(undefined, { ...CACHED, isSelectedByPlugin: true }),
      start('no-previous'),
    ],
    ['leaves what is only wanted on demand asleep', plan(undefined, { start: 'on-demand' }), defer('on-demand')],
    [
      'leaves one of a selected plugin asleep that is only wanted on demand',
      plan(undefined, { start: 'on-demand', isSelectedByPlugin: true }),
      defer('on-demand'),
    ],
    [
      'lets a changed one sleep whose tools are known',
      plan({ identity: { ...identity, configKey: 'c2' } }, CACHED),
      defer('cached'),
    ],
    ['never starts what its entry forbids', plan({}, { start: 'never' }, { reconnect: 'all' }), hold('config-problem')],
    [
      'never starts what is disabled',
      plan(undefined, { start: 'never', definition: { ...definition, enabled: false } }),
      hold('disabled'),
    ],
    ['keeps a sleeping one asleep', plan({ phase: 'dormant' }, CACHED), REUSE],
    ['keeps one asleep that is wanted on demand', plan({ phase: 'dormant' }, { start: 'on-demand' }), REUSE],
    ['wakes a sleeping one whose known tools are gone', plan({ phase: 'dormant' }), start('wanted-now')],
    [
      'wakes a sleeping one that became eager',
      plan({ phase: 'dormant' }, { ...CACHED, start: 'eager' }),
      start('wanted-now'),
    ],
    [
      'gives a sleeping one that would speak as somebody else a new connection',
      plan({ phase: 'dormant' }, { ...CACHED, ...speakingAs('bob') }),
      defer('cached'),
    ],
  ])('%s', (_, made, expected) => {
    expect(made).toEqual(expected)
  })
})

describe('what is kept', () => {
  test.each([
    ['keeps what is unchanged', plan({}), REUSE],
    [
      'replaces one whose configuration changed',
      plan({ identity: { ...identity, configKey: 'c2' } }),
      start('config-changed'),
    ],
    ['replaces a ready one that may list more now', plan({ catalogItemLimit: 1 }), start('limits-changed')],
    ['keeps a ready one whose startup budget changed', plan({ startupTimeoutMs: 1, installTimeoutMs: 1 }), REUSE],
    ['takes over a start that is under way', plan({ phase: 'starting' }), ADOPT],
    ['takes over a start that is under way although its tools are known', plan({ phase: 'starting' }, CACHED), ADOPT],
    [
      'starts anew with another startup budget',
      plan({ phase: 'starting', startupTimeoutMs: 1 }),
      start('limits-changed'),
    ],
    [
      'starts anew with another install budget',
      plan({ phase: 'starting', installTimeoutMs: 1 }),
      start('limits-changed'),
    ],
    [
      'starts anew when it may list more now',
      plan({ phase: 'starting', catalogItemLimit: 1 }),
      start('limits-changed'),
    ],
    ['starts anew as somebody else', plan({ phase: 'starting' }, speakingAs('bob')), start('credentials-changed')],
    ['starts anew what has closed', plan({ phase: 'closed' }), start('not-healthy')],
    ['starts anew what has closed, whatever is known of it', plan({ phase: 'closed' }, CACHED), start('not-healthy')],
    [
      'leaves asleep what has closed and is wanted on demand',
      plan({ phase: 'closed' }, { start: 'on-demand' }),
      defer('on-demand'),
    ],
  ])('%s', (_, made, expected) => {
    expect(made).toEqual(expected)
  })

  test.each(['failed', 'cancelled', 'auth-failed'] as const)(
    'tries again what is %s, and only where that was asked for',
    (phase) => {
      expect(plan({ phase })).toEqual(start('not-healthy'))
      expect(plan({ phase }, CACHED)).toEqual(start('not-healthy'))
      expect(plan({ phase }, {}, { retriesFailed: false })).toEqual(REUSE)
      expect(plan({ phase }, speakingAs('bob'), { retriesFailed: false })).toEqual(start('credentials-changed'))
    },
  )

  verifies(['conn.032', 'conn.026'], () => {
    expect(plan({ phase: 'auth-failed' })).toEqual(start('not-healthy'))
    const contended = speakingAs(null, true)
    expect(plan({ phase: 'auth-failed' }, contended)).toEqual({ kind: 'keep-auth-failure', because: 'store-contended' })
    // Whoever has other credentials is no longer the one that was refused.
    expect(plan({ phase: 'auth-failed' }, speakingAs('new', true))).toEqual(start('credentials-changed'))
    // Contention says nothing about a failure that has nothing to do with credentials.
    expect(plan({ phase: 'failed' }, contended)).toEqual(start('not-healthy'))
    expect(plan({ phase: 'auth-failed' }, contended, { reconnect: 'all' })).toEqual(start('reconnect-asked'))
  })
})

describe('whom a ready connection speaks as', () => {
  const as = (credentials: string | null | undefined): object => ({ identity: { configKey: 'c1', credentials } })

  verifies('conn.046', () => {
    expect(plan({ liveCredentials: 'token-1' })).toEqual(start('credentials-changed'))
    expect(plan({ liveCredentials: null })).toEqual(REUSE)
    expect(plan({ liveCredentials: undefined })).toEqual(REUSE)
  })

  verifies('conn.047', () => {
    expect(plan({ ...as('alice') }, speakingAs(undefined))).toEqual(REUSE)
    expect(plan({ ...as('alice'), liveCredentials: 'alice-2' }, speakingAs(undefined))).toEqual(REUSE)
  })

  verifies('conn.048', () => {
    expect(plan({ ...as('old'), liveCredentials: 'refreshed' }, speakingAs('refreshed'))).toEqual(REUSE)
    expect(plan({ ...as('old'), liveCredentials: 'refreshed' }, speakingAs('other'))).toEqual(
      start('credentials-changed'),
    )
    // What the session holds counts, not what it was started with.
    expect(plan({ ...as('other'), liveCredentials: 'refreshed' }, speakingAs('old'))).toEqual(
      start('credentials-changed'),
    )
    expect(plan({ ...as('old') }, speakingAs('new'))).toEqual(start('credentials-changed'))
    expect(plan({ ...as('same'), liveCredentials: 'refreshed' }, speakingAs('same'))).toEqual(REUSE)
  })
})

describe('what a reconnect means', () => {
  test.each([
    ['starts anew what is named', plan({}, {}, { reconnect: new Set(['s']) }), start('reconnect-asked')],
    ['leaves the others alone', plan({}, {}, { reconnect: new Set(['other']) }), REUSE],
    [
      'starts everything anew, known tools or not',
      plan({ phase: 'dormant' }, CACHED, { reconnect: 'all' }),
      start('reconnect-asked'),
    ],
    [
      'starts what is only wanted on demand',
      plan(undefined, { start: 'on-demand' }, { reconnect: 'all' }),
      start('reconnect-asked'),
    ],
  ])('%s', (_, made, expected) => {
    expect(made).toEqual(expected)
  })
})

test('what a definition wants', () => {
  const want = (more: Partial<ServerDefinition>, policy: 'all' | readonly string[] = 'all'): string =>
    desiredConnection({ ...definition, ...more }, { identity, hasVisibleCachedTools: false }, policy).start
  expect(want({})).toBe('lazy')
  expect(want({ startup: 'eager' })).toBe('eager')
  expect(want({ required: true })).toBe('eager')
  expect(want({ enabled: false })).toBe('never')
  const problem = { severity: 'error', code: 'CONFIG_SHAPE', message: 'm', file: 'f', line: 1, column: 1 } as const
  expect(want({ problem })).toBe('never')
  expect(want({ problem: { ...problem, severity: 'warning' } })).toBe('lazy')
  expect(want({}, ['s'])).toBe('eager')
  expect(want({ startup: 'eager' }, ['other'])).toBe('on-demand')
  expect(want({ enabled: false }, ['s'])).toBe('never')
  const ofPlugin = (isSelected: boolean): boolean =>
    desiredConnection(
      { ...definition, plugin: { id: 'p', displayName: 'P', isSelected } },
      { identity, hasVisibleCachedTools: true },
      'all',
    ).isSelectedByPlugin
  expect([ofPlugin(true), ofPlugin(false)]).toEqual([true, false])
})

describe('whom a binding waits for', () => {
  const facts: CaptureFacts = {
    state: 'starting',
    hasVisibleCachedTools: false,
    hasCatalog: false,
    isHosted: false,
    isRequired: false,
    isAskedFor: false,
    isOnDemand: false,
  }
  test.each<[string, Partial<CaptureFacts>, ReturnType<typeof decideWait>]>([
    ['an optional one, for its grace', {}, 'grace'],
    ['one that installs its package, too', { state: 'installing' }, 'grace'],
    ['not for one whose tools are known', { hasVisibleCachedTools: true, hasCatalog: true }, 'none'],
    ['for one whose known tools are all hidden', { hasCatalog: true }, 'grace'],
    ['a required one, until it has settled', { isRequired: true }, 'settle'],
    ['a required one, although its tools are known', { isRequired: true, hasVisibleCachedTools: true }, 'settle'],
    ['one that is asked for, until it has settled', { isAskedFor: true, hasVisibleCachedTools: true }, 'settle'],
    ['one that sleeps and is asked for', { state: 'dormant', isAskedFor: true, isOnDemand: true }, 'settle'],
    ['not for one that sleeps until it is named', { state: 'dormant', isOnDemand: true }, 'none'],
    ['one that sleeps although its known tools are gone', { state: 'dormant' }, 'grace'],
    ['not for one that sleeps and whose tools are known', { state: 'dormant', hasVisibleCachedTools: true }, 'none'],
    ['a hosted one without a catalog, until it has settled', { isHosted: true }, 'settle'],
    ['not for a hosted one whose known catalog is empty', { isHosted: true, hasCatalog: true }, 'none'],
    ['not for one that is ready', { state: 'ready', isRequired: true, isAskedFor: true }, 'none'],
    ['not for one that has failed', { state: 'failed', isRequired: true, isAskedFor: true }, 'none'],
    ['not for one that waits for a person', { state: 'needs-auth', isAskedFor: true }, 'none'],
    ['not for one that was cancelled', { state: 'cancelled', isAskedFor: true }, 'none'],
  ])('%s', (_, changed, expected) => {
    expect(decideWait({ ...facts, ...changed })).toBe(expected)
  })

  test('a binding shows own tools of what is ready, known ones of what may become ready, and nothing of what failed', () => {
    const shown = (state: CaptureFacts['state'], hasCatalog: boolean): string => decideSource({ state, hasCatalog })
    expect(shown('ready', false)).toBe('live')
    expect(shown('ready', true)).toBe('live')
    for (const state of ['starting', 'installing', 'dormant'] as const) {
      expect(shown(state, true)).toBe('cached')
      expect(shown(state, false)).toBe('nothing')
    }
    for (const state of ['failed', 'needs-auth', 'needs-input', 'disabled', 'cancelled', 'closed'] as const)
      expect(shown(state, true)).toBe('nothing')
  })
})

test('a startup summary lists what was ready first, and says nothing of what sleeps', () => {
  const reason = { code: 'SERVER_EXITED', message: 'gone' } as const
  const outcome = (
    server: string,
    kind: ConnectionState['kind'],
    planned: StartupOutcome['plan'] = 'start',
  ): StartupOutcome => ({
    server,
    plan: planned,
    state: { kind, sinceAtMs: 1, reason, failuresBefore: 0, failures: 1, retryAtMs: 2 } as unknown as ConnectionState,
  })
  expect(
    summarizeStartup(7, [
      outcome('new', 'ready'),
      outcome('kept', 'ready', 'reuse'),
      outcome('adopted', 'ready', 'adopt'),
      outcome('broken', 'failed'),
      outcome('signed-out', 'needs-auth', 'keep-auth-failure'),
      outcome('asks', 'needs-input'),
      outcome('stopped', 'cancelled'),
      outcome('gone', 'closed'),
      outcome('asleep', 'dormant', 'defer'),
      outcome('off', 'disabled', 'hold'),
      outcome('again', 'starting'),
    ]),
  ).toEqual({
    generation: 7,
    ready: ['kept', 'new', 'adopted'],
    failed: [
      { server: 'broken', ...reason },
      { server: 'signed-out', ...reason },
      { server: 'asks', ...reason },
    ],
    cancelled: ['stopped', 'gone'],
  })
})
