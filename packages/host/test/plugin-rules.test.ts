// The pure rules of hosted plugins, as tables.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { mergeCatalog } from '../src/plugins/catalog/merge-catalog.ts'
import { backoffNext, isPending } from '../src/plugins/hosted/backoff.ts'
import { decideAnswer, decideRefresh, type RefreshFacts } from '../src/plugins/hosted/decide.ts'
import {
  type AuthKey,
  type Backoff,
  type CatalogGeneration,
  FRESH,
  OFF,
  type PluginsThreadState,
  type RefreshKeys,
  sameAuthKey,
  visibleCatalog,
  withoutGeneration,
  withPluginsEnabled,
} from '../src/plugins/hosted/state.ts'
import type { PluginCatalog } from '../src/plugins/index.ts'
import { complete, entry, partial, TestResources } from './plugin-support.ts'

const [one, other, off] = [entry('one'), entry('other'), entry('one', { enabled: false })]

verifies('plugin.014', () => {
  const [none, full, part] = [complete(), complete(one), partial(one)]
  const [empty, next] = [partial(), partial(other)]
  const rows: readonly (readonly [string, PluginCatalog | undefined, PluginCatalog, PluginCatalog])[] = [
    ['nothing yet, partial', undefined, part, part],
    ['nothing yet, empty partial', undefined, empty, empty],
    ['nothing yet, complete', undefined, full, full],
    ['partial over partial', part, next, next],
    ['empty partial over partial', part, empty, empty],
    ['complete over partial', part, full, full],
    ['complete over complete', full, complete(other), complete(other)],
    ['complete empty over complete', full, none, none],
    ['complete with a warning over complete', full, { ...none, warnings: ['w'] }, { ...none, warnings: ['w'] }],
    ['partial over complete', full, next, full],
    ['partial over complete empty', none, next, none],
    ['partial over complete with a plugin that is off', complete(off), next, complete(off)],
    // Where H1 and H2 differ: an empty partial clears at once, and a second partial is retained over as the first.
    ['empty partial over complete', full, empty, empty],
    ['partial over what a partial was retained over', mergeCatalog(full, part), next, full],
    ['partial over an empty partial', empty, next, next],
  ]
  for (const [name, previous, answer, kept] of rows) expect(mergeCatalog(previous, answer), name).toEqual(kept)
  expect(mergeCatalog(full, next)).toBe(full)
  expect(mergeCatalog(part, next)).toBe(next)
})

const scope = {}
const auth: AuthKey = { scope, hasServer: true }
const otherAuth: AuthKey = { scope: {}, hasServer: true }
const keys: RefreshKeys = { auth, connection: { server: 'apps' } }

test('two scopes are the same if their parts are the same objects', () => {
  const rows: readonly (readonly [AuthKey, AuthKey, boolean])[] = [
    [null, null, true],
    [null, auth, false],
    [auth, null, false],
    [auth, { scope, hasServer: true }, true],
    [auth, otherAuth, false],
    [auth, { scope, hasServer: false }, false],
    [{ scope: undefined, hasServer: true }, { scope: undefined, hasServer: true }, true],
    [{ scope: undefined, hasServer: false }, null, false],
  ]
  for (const [a, b, same] of rows) expect(sameAuthKey(a, b), JSON.stringify([a, b])).toBe(same)
})

verifies('plugin.015', () => {
  const delays: number[] = []
  let backoff: Backoff | undefined
  let nowMs = 5
  for (let failure = 0; failure < 6; failure++) {
    backoff = backoffNext(backoff, keys, nowMs)
    expect(backoff.freeAtMs).toBe(nowMs + backoff.delayMs)
    expect(isPending(backoff, keys, nowMs)).toBe(true)
    expect(isPending(backoff, keys, backoff.freeAtMs - 1)).toBe(true)
    expect(isPending(backoff, keys, backoff.freeAtMs)).toBe(false)
    delays.push(backoff.delayMs)
    nowMs = backoff.freeAtMs + 7
  }
  expect(delays).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
  // Another account or connection neither waits nor inherits.
  const grown = backoffNext(backoffNext(undefined, keys, 0), keys, 0)
  for (const others of [
    { ...keys, auth: otherAuth },
    { ...keys, auth: null },
    { ...keys, connection: { server: 'apps' } },
    { ...keys, connection: undefined },
  ]) {
    expect(isPending(grown, others, 0)).toBe(false)
    expect(backoffNext(grown, others, 0)).toEqual({ keys: others, delayMs: 30_000, freeAtMs: 30_000 })
  }
  expect(isPending(grown, { auth: { scope, hasServer: true }, connection: keys.connection }, 0)).toBe(true)
  expect(isPending(undefined, keys, 0)).toBe(false)
})

const client = new TestResources()
const generation: CatalogGeneration = { auth, client, catalog: complete(one) }
const retry = backoffNext(undefined, keys, 0)
const on = (more: Partial<Extract<PluginsThreadState, { kind: 'on' }>> = {}): PluginsThreadState => ({
  ...FRESH,
  kind: 'on',
  generation: undefined,
  retry: undefined,
  ...more,
})

test('whether a provider is asked', () => {
  const facts: RefreshFacts = {
    client,
    keys,
    generationAuthNow: auth,
    accepted: undefined,
    hasWaited: false,
    lastSucceeded: false,
  }
  const fresh = on({ generation: { auth, client, catalog: undefined } })
  const known = on({ generation })
  const rows: readonly (readonly [string, PluginsThreadState, Partial<RefreshFacts>, object])[] = [
    ['off', OFF, {}, { kind: 'off' }],
    ['nothing known', FRESH, {}, { kind: 'fetch', state: fresh, hasCleared: false }],
    ['something known', known, {}, { kind: 'fetch', state: known, hasCleared: false }],
    ['accepted', known, { accepted: { auth: { ...auth } } }, { kind: 'reuse', because: 'accepted' }],
    ['accepted for another', known, { accepted: { auth: null } }, { kind: 'fetch', state: known, hasCleared: false }],
    ['accepted, nothing there', fresh, { accepted: { auth } }, { kind: 'fetch', state: fresh, hasCleared: false }],
    [
      'accepted, of another scope',
      on({ generation: { ...generation, auth: otherAuth } }),
      { accepted: { auth }, generationAuthNow: otherAuth },
      { kind: 'fetch', state: fresh, hasCleared: true },
    ],
    [
      'accepted, its own client says otherwise',
      known,
      { accepted: { auth }, generationAuthNow: otherAuth },
      { kind: 'fetch', state: fresh, hasCleared: true },
    ],
    ['waited', known, { hasWaited: true, lastSucceeded: true }, { kind: 'reuse', because: 'waited' }],
    ['waited for a failure', known, { hasWaited: true }, { kind: 'fetch', state: known, hasCleared: false }],
    ['not waited', known, { lastSucceeded: true }, { kind: 'fetch', state: known, hasCleared: false }],
    ['waited, nothing there', FRESH, { hasWaited: true, lastSucceeded: true }, { kind: 'fetch', state: fresh }],
    ['cooldown', on({ generation, retry }), {}, { kind: 'cooldown' }],
    ['reuse before cooldown', on({ generation, retry }), { accepted: { auth } }, { kind: 'reuse' }],
    [
      'cooldown of another account',
      on({ retry: backoffNext(undefined, { ...keys, auth: otherAuth }, 0) }),
      {},
      { kind: 'fetch' },
    ],
    [
      'another scope without a catalog',
      on({ generation: { ...generation, auth: otherAuth, catalog: undefined } }),
      { generationAuthNow: otherAuth },
      { kind: 'fetch', state: fresh, hasCleared: false },
    ],
    [
      'nobody to ask is a scope',
      on({ generation: { auth: null, client: undefined, catalog: complete() } }),
      {
        client: undefined,
        keys: { auth: null, connection: undefined },
        generationAuthNow: null,
        accepted: { auth: null },
      },
      { kind: 'reuse' },
    ],
  ]
  for (const [name, state, more, plan] of rows)
    expect(decideRefresh(state, { ...facts, ...more }, 29_999), name).toMatchObject(plan)
  expect(decideRefresh(on({ generation, retry }), facts, 30_000).kind).toBe('fetch')
})

test('what becomes of an answer', () => {
  const known = on({ generation, retry })
  const answered = { kind: 'answered', catalog: complete(other) } as const
  const failed = { kind: 'failed' } as const
  const facts = { keys, generationAuthNow: auth, outcome: answered }
  const published = (catalog: PluginCatalog): PluginsThreadState => on({ generation: { ...generation, catalog } })
  expect(decideAnswer(known, facts, 7)).toEqual({
    kind: 'published',
    state: published(complete(other)),
    hasKeptPrevious: false,
  })
  const kept = decideAnswer(known, { ...facts, outcome: { kind: 'answered', catalog: partial(other) } }, 7)
  expect(kept).toEqual({ kind: 'published', state: published(complete(one)), hasKeptPrevious: true })
  // A failure keeps what is there, and waits longer each time.
  expect(decideAnswer(known, { ...facts, outcome: failed }, 7)).toEqual({
    kind: 'failed',
    state: on({ generation, retry: { keys, delayMs: 60_000, freeAtMs: 60_007 } }),
  })
  const refused: readonly (readonly [string, PluginsThreadState, object])[] = [
    ['switched off', OFF, {}],
    ['dropped', on(), {}],
    ['of another scope', on({ generation: { ...generation, auth: otherAuth } }), {}],
    ['another scope now', known, { generationAuthNow: otherAuth }],
  ]
  for (const [name, state, more] of refused)
    for (const outcome of [answered, failed])
      expect(decideAnswer(state, { ...facts, ...more, outcome }, 7), name).toEqual({ kind: 'refused' })
})

test('what is visible, and what changed settings leave', () => {
  const known = on({ generation, retry })
  expect(visibleCatalog(known, { ...auth })).toEqual(complete(one))
  expect(visibleCatalog(known, otherAuth)).toBeUndefined()
  expect(visibleCatalog(on(), null)).toBeUndefined()
  expect(visibleCatalog(OFF, null)).toBeUndefined()
  expect(withPluginsEnabled(known, true)).toBe(known)
  expect(withPluginsEnabled(known, false)).toEqual({ kind: 'off' })
  expect(withPluginsEnabled(OFF, true)).toEqual({ kind: 'on', generation: undefined, retry: undefined })
  expect(withoutGeneration(known)).toEqual(on({ retry }))
  expect(withoutGeneration(OFF)).toBe(OFF)
})
