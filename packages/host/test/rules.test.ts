// The pure files of the catalog, and other small rules, as tables: one row per rule.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import {
  CALM,
  DEBOUNCE_MS,
  decideRefresh,
  type RefreshEvent,
  type RefreshState,
  STORM_PAUSE_MS,
  STORM_REFRESHES_MAX,
  STORM_WINDOW_MS,
} from '../src/catalog/decide.ts'
import { toolFilter } from '../src/catalog/filter.ts'
import { isVisibleToModel } from '../src/catalog/visibility.ts'
import { packageRunnerOf } from '../src/protocol/package-runner.ts'
import { mayProduce } from '../src/set/offers.ts'

describe('when to ask for a changed list', () => {
  const state = (more: Partial<RefreshState>): RefreshState => ({ ...CALM, ...more })
  const decide = (from: RefreshState, kind: RefreshEvent['kind'], nowMs: number): object =>
    decideRefresh(from, { kind, nowMs })

  test('one notice waits for the others', () => {
    expect(decide(CALM, 'noticed', 0)).toEqual({
      state: state({ isWanted: true }),
      action: { kind: 'ring-in', ms: DEBOUNCE_MS },
    })
    expect(decide(state({ isWanted: true }), 'noticed', 10)).toEqual({
      state: state({ isWanted: true }),
      action: { kind: 'wait' },
    })
  })

  test('a notice while asking is asked for once more afterwards', () => {
    const running = state({ isRunning: true, begunAtMs: [0] })
    expect(decide(running, 'noticed', 5)).toEqual({ state: { ...running, isWanted: true }, action: { kind: 'wait' } })
    expect(decide({ ...running, isWanted: true }, 'done', 9)).toEqual({
      state: { ...running, isWanted: true, isRunning: false },
      action: { kind: 'ring-in', ms: DEBOUNCE_MS },
    })
    expect(decide(running, 'done', 9)).toEqual({ state: { ...running, isRunning: false }, action: { kind: 'wait' } })
  })

  test('a timer that rings for nothing asks nothing', () => {
    expect(decide(CALM, 'due', 5)).toEqual({ state: CALM, action: { kind: 'wait' } })
    const running = state({ isRunning: true, isWanted: true })
    expect(decide(running, 'due', 5)).toEqual({ state: running, action: { kind: 'wait' } })
  })

  test('asking is noted, and old askings are forgotten', () => {
    expect(decide(state({ isWanted: true, begunAtMs: [0, 50_000] }), 'due', STORM_WINDOW_MS)).toEqual({
      state: state({ isRunning: true, begunAtMs: [50_000, STORM_WINDOW_MS] }),
      action: { kind: 'refresh' },
    })
  })

  test('too many askings within the window are a storm, and the pause holds', () => {
    const begunAtMs = Array.from({ length: STORM_REFRESHES_MAX }, (_, index) => index * 1_000)
    const broken = decideRefresh(state({ isWanted: true, begunAtMs }), { kind: 'due', nowMs: 20_000 })
    expect(broken).toEqual({
      state: state({ isWanted: true, pausedUntilMs: 20_000 + STORM_PAUSE_MS }),
      action: { kind: 'pause', ms: STORM_PAUSE_MS, refreshes: STORM_REFRESHES_MAX },
    })
    expect(decide(broken.state, 'due', 30_000)).toEqual({
      state: broken.state,
      action: { kind: 'ring-in', ms: STORM_PAUSE_MS - 10_000 },
    })
    expect(decide(state({ pausedUntilMs: 50_000 }), 'noticed', 40_000)).toEqual({
      state: state({ isWanted: true, pausedUntilMs: 50_000 }),
      action: { kind: 'ring-in', ms: 10_000 },
    })
    expect(decide(broken.state, 'due', 20_000 + STORM_PAUSE_MS)).toEqual({
      state: state({ isRunning: true, begunAtMs: [20_000 + STORM_PAUSE_MS] }),
      action: { kind: 'refresh' },
    })
  })
})

describe('what may be seen and called', () => {
  verifies('catalog.010', () => {
    const allowed = (policy: object): string[] => ['a', 'b', 'a*'].filter(toolFilter(policy))
    expect(allowed({})).toEqual(['a', 'b', 'a*'])
    expect(allowed({ allow: ['a'] })).toEqual(['a'])
    expect(allowed({ deny: ['a'] })).toEqual(['b', 'a*'])
    expect(allowed({ allow: ['a', 'b'], deny: ['a'] })).toEqual(['b'])
    expect(allowed({ allow: [] })).toEqual([])
    expect(allowed({ deny: [] })).toEqual(['a', 'b', 'a*'])
    // No patterns: a star is a star.
    expect(allowed({ allow: ['a*'] })).toEqual(['a*'])
  })

  test.each([
    ['absent', undefined, true],
    ['an empty list', [], false],
    ['only apps', ['app'], false],
    ['models', ['model'], true],
    ['models among others', ['app', 'model'], true],
    ['a text instead of a list', 'app', true],
    ['null', null, true],
  ])('visibility: %s', (_, visibility, visible) => {
    expect(isVisibleToModel({ name: 't', _meta: { ui: visibility === undefined ? {} : { visibility } } })).toBe(visible)
  })
})

describe('commands that may install first', () => {
  test.each([
    ['npx', ['-y', 'pkg'], 'npx'],
    ['/usr/bin/npx', [], 'npx'],
    ['C:\\node\\npx.cmd', ['pkg'], 'npx'],
    ['uvx', ['pkg'], 'uvx'],
    ['bunx', ['pkg'], 'bunx'],
    ['pnpm', ['dlx', 'pkg'], 'pnpm dlx'],
    ['pnpm', ['--silent', 'dlx', 'pkg'], 'pnpm dlx'],
    ['pnpm', ['run', 'dlx'], undefined],
    ['npm', ['exec', 'pkg'], 'npm exec'],
    ['node', ['npx'], undefined],
    ['my-npx', ['pkg'], undefined],
    ['constructor', [], undefined],
  ])('%s %j', (command, args, runner) => {
    expect(packageRunnerOf(command, args)).toBe(runner)
  })
})

describe('which template may have made a URI', () => {
  test.each([
    ['file:///{path}', 'file:///a/b', true],
    ['file:///{path}', 'http://a', false],
    ['db://{table}/schema', 'db://users/schema', true],
    ['db://{table}/schema', 'db://users/rows', false],
    ['db://{table}/schema', 'db:///schema', false],
    ['{+anything}', 'file:///a', false],
    ['fixed://x', 'fixed://x', true],
    ['fixed://x', 'fixed://y', false],
    ['broken://}{', 'broken://a', false],
  ])('%s and %s', (template, uri, fits) => {
    expect(mayProduce(template, uri)).toBe(fits)
  })

  verifies('security.137', () => {
    const template = `x://${'{a}'.repeat(20_000)}y`
    const uri = `x://${'a'.repeat(8_000)}z`
    const beganAtMs = performance.now()
    for (let round = 0; round < 100; round++) expect(mayProduce(template, uri)).toBe(false)
    expect(performance.now() - beganAtMs).toBeLessThan(1_000)
  })
})
