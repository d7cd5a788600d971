// The pure files of connection and set, as tables: one row per rule, whole values compared.
import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HostError } from '../src/base/index.ts'

import {
  type ConnectionEvent,
  type ConnectionState,
  retryDelayMs,
  STABLE_AFTER_MS,
  type Transition,
  transition,
} from '../src/connection/state.ts'
import { classifyCall } from '../src/set/classify.ts'

const why = { code: 'SERVER_EXITED', message: 'gone' } as const
const stateOf = (state: Partial<ConnectionState> & Pick<ConnectionState, 'kind'>): ConnectionState =>
  ({
    sinceAtMs: 1_000,
    reason: why,
    failuresBefore: 0,
    failures: 1,
    retryAtMs: 5_000,
    ...state,
  }) as unknown as ConnectionState
const outline = ({ state, effects }: Transition): object => ({
  kind: state.kind,
  effects,
  ...('retryAtMs' in state && state.kind === 'failed' ? { retryAtMs: state.retryAtMs, failures: state.failures } : {}),
})

interface Row {
  it: string
  from: ConnectionState
  event: ConnectionEvent
  to: object
}
const nothing = (kind: ConnectionState['kind']): object => ({ kind, effects: [] })

const rows: Row[] = [
  {
    it: 'a sleeping server starts when it is needed',
    from: stateOf({ kind: 'dormant' }),
    event: { kind: 'needed', atMs: 2_000 },
    to: { kind: 'starting', effects: ['begin-attempt', 'report'] },
  },
  {
    it: 'a cancelled start may be begun again',
    from: stateOf({ kind: 'cancelled' }),
    event: { kind: 'needed', atMs: 2_000 },
    to: { kind: 'starting', effects: ['begin-attempt', 'report'] },
  },
  {
    it: 'a failed server is not started before its time',
    from: { kind: 'failed', sinceAtMs: 1_000, reason: why, failures: 1, retryAtMs: 2_000 },
    event: { kind: 'needed', atMs: 1_999 },
    to: { kind: 'failed', effects: [], retryAtMs: 2_000, failures: 1 },
  },
  {
    it: 'a failed server is started when its time has come',
    from: { kind: 'failed', sinceAtMs: 1_000, reason: why, failures: 1, retryAtMs: 2_000 },
    event: { kind: 'needed', atMs: 2_000 },
    to: { kind: 'starting', effects: ['begin-attempt', 'report'] },
  },
  {
    it: 'a server that needs a person is not started by being needed',
    from: stateOf({ kind: 'needs-auth' }),
    event: { kind: 'needed', atMs: 9_000 },
    to: nothing('needs-auth'),
  },
  {
    it: 'a disabled server is never started',
    from: stateOf({ kind: 'disabled' }),
    event: { kind: 'needed', atMs: 9_000 },
    to: nothing('disabled'),
  },
  {
    it: 'a start is begun once',
    from: stateOf({ kind: 'starting' }),
    event: { kind: 'needed', atMs: 9_000 },
    to: nothing('starting'),
  },
  {
    it: 'a package runner may be installing',
    from: stateOf({ kind: 'starting' }),
    event: { kind: 'installing' },
    to: { kind: 'installing', effects: ['report'] },
  },
  {
    it: 'what has said something is installed',
    from: stateOf({ kind: 'installing' }),
    event: { kind: 'installed' },
    to: { kind: 'starting', effects: ['report'] },
  },
  {
    it: 'a start that opened is ready',
    from: stateOf({ kind: 'installing' }),
    event: { kind: 'opened', atMs: 3_000 },
    to: { kind: 'ready', effects: ['report'] },
  },
  {
    it: 'the first failure pauses for a second',
    from: stateOf({ kind: 'starting' }),
    event: { kind: 'open-failed', atMs: 3_000, as: 'failed', reason: why },
    to: { kind: 'failed', effects: ['end-attempt', 'report'], retryAtMs: 4_000, failures: 1 },
  },
  {
    it: 'the third failure in a row pauses for four seconds',
    from: { kind: 'starting', sinceAtMs: 1_000, reason: why, failuresBefore: 2 },
    event: { kind: 'open-failed', atMs: 3_000, as: 'failed', reason: why },
    to: { kind: 'failed', effects: ['end-attempt', 'report'], retryAtMs: 7_000, failures: 3 },
  },
  {
    it: 'refused credentials wait for a person',
    from: stateOf({ kind: 'starting' }),
    event: { kind: 'open-failed', atMs: 3_000, as: 'needs-auth', reason: why },
    to: { kind: 'needs-auth', effects: ['end-attempt', 'report'] },
  },
  {
    it: 'a crash soon after the start counts as a failure',
    from: { kind: 'ready', sinceAtMs: 1_000, failuresBefore: 1 },
    event: { kind: 'lost', atMs: 1_000 + STABLE_AFTER_MS - 1, as: 'failed', reason: why },
    to: {
      kind: 'failed',
      effects: ['end-attempt', 'report'],
      retryAtMs: 1_000 + STABLE_AFTER_MS - 1 + 2_000,
      failures: 2,
    },
  },
  {
    it: 'a crash after a long life may be repaired at once',
    from: { kind: 'ready', sinceAtMs: 1_000, failuresBefore: 7 },
    event: { kind: 'lost', atMs: 1_000 + STABLE_AFTER_MS, as: 'failed', reason: why },
    to: { kind: 'failed', effects: ['end-attempt', 'report'], retryAtMs: 1_000 + STABLE_AFTER_MS, failures: 0 },
  },
  {
    it: 'a loss that comes after a failure says nothing new',
    from: stateOf({ kind: 'failed' }),
    event: { kind: 'lost', atMs: 3_000, as: 'failed', reason: why },
    to: { kind: 'failed', effects: [], retryAtMs: 5_000, failures: 1 },
  },
  {
    it: 'a start can be cancelled',
    from: stateOf({ kind: 'installing' }),
    event: { kind: 'cancel', atMs: 3_000, reason: why },
    to: { kind: 'cancelled', effects: ['end-attempt', 'report'] },
  },
  {
    it: 'a ready server is not cancelled',
    from: stateOf({ kind: 'ready' }),
    event: { kind: 'cancel', atMs: 3_000, reason: why },
    to: nothing('ready'),
  },
  {
    it: 'an opening that comes too late opens nothing',
    from: stateOf({ kind: 'cancelled' }),
    event: { kind: 'opened', atMs: 3_000 },
    to: nothing('cancelled'),
  },
  {
    it: 'a release closes',
    from: stateOf({ kind: 'ready' }),
    event: { kind: 'release', atMs: 3_000 },
    to: { kind: 'closed', effects: ['end-attempt'] },
  },
]

const RUNNING: ReadonlySet<string> = new Set(['starting', 'installing', 'ready'])

/** How many attempts are open after these effects; never more than one. */
function openAfter(open: number, { effects }: Transition): number {
  let after = open
  for (const effect of effects) {
    if (effect === 'end-attempt') after = 0
    if (effect === 'begin-attempt') after += 1
    expect(after).toBeLessThanOrEqual(1)
  }
  return after
}

describe('the life of a connection', () => {
  test.each(rows)('$it', ({ from, event, to }) => {
    expect(outline(transition(from, event))).toEqual(to)
  })

  verifies('connection.026', () => {
    const atMs = fc.integer({ min: 0, max: 100_000 })
    const event: fc.Arbitrary<ConnectionEvent> = fc.oneof(
      fc.record({ kind: fc.constantFrom('needed' as const, 'opened' as const, 'release' as const), atMs }),
      fc.record({ kind: fc.constantFrom('installing' as const, 'installed' as const) }),
      fc.record({ kind: fc.constant('cancel' as const), atMs, reason: fc.constant(why) }),
      fc.record({
        kind: fc.constantFrom('open-failed' as const, 'lost' as const),
        atMs,
        as: fc.constantFrom('failed' as const, 'needs-auth' as const, 'needs-input' as const),
        reason: fc.constant(why),
      }),
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: ConnectionState = stateOf({ kind: 'dormant' })
        let open = 0
        for (const one of events) {
          const next = transition(state, one)
          if (state.kind === 'closed') expect(next).toEqual({ state, effects: [] })
          open = openAfter(open, next)
          state = next.state
          expect(open).toBe(RUNNING.has(state.kind) ? 1 : 0)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('while it is tried again, the reason of the failure stays visible', () => {
    const failed: ConnectionState = { kind: 'failed', sinceAtMs: 1, reason: why, failures: 1, retryAtMs: 2 }
    const { state } = transition(failed, { kind: 'needed', atMs: 2 })
    expect(state).toMatchObject({
      kind: 'starting',
      reason: { code: 'SERVER_EXITED', message: 'Starting again. Before: gone' },
    })
  })

  test('pauses double from one second to thirty', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 7, 99].map(retryDelayMs)).toEqual([
      0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ])
  })
})

describe('how a call ended', () => {
  const facts = { what: 's/t', idleTimeoutMs: 100, totalTimeoutMs: 900 }
  const end = (code: HostError['code'], details = {}): string => {
    const { kind, error } = classifyCall(new HostError(code, 'm', { details }), facts)
    return `${kind} ${error.code}`
  }

  test('whoever may have acted is never said not to have', () => {
    expect(end('CONNECTION_LOST', { sent: true })).toBe('unknown OUTCOME_UNKNOWN')
    expect(end('CONNECTION_LOST', { sent: false })).toBe('failed CONNECTION_LOST')
    expect(end('CANCELLED')).toBe('cancelled CANCELLED')
    expect(end('CALL_TIMEOUT')).toBe('failed CALL_TIMEOUT')
    expect(end('CALL_TOTAL_TIMEOUT')).toBe('failed CALL_TOTAL_TIMEOUT')
    expect(end('SERVER_ERROR')).toBe('failed SERVER_ERROR')
  })

  test('messages name the tool and the limit', () => {
    expect(classifyCall(new HostError('CALL_TIMEOUT', 'm'), facts).error.message).toBe(
      's/t neither answered nor reported progress for 100 ms (toolTimeoutMs) and was cancelled',
    )
  })
})
