// Contributors and stores: order, isolation, limits.
import { createHost } from '@convoke/host'
import { type Extension, type ExtensionStore, StoreKey, storeEntry } from '@convoke/host/extension'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { CALLBACK_MS_MAX, ContributorCalls, type ExtensionFault } from '../src/extensions/calls.ts'
import { ExtensionRegistry, ExtensionStore as Store } from '../src/extensions/index.ts'
import { STORE_VALUES_MAX } from '../src/extensions/stores.ts'

const extension = (id: string, install: Extension['install']): Extension => ({ id, install })

/** Calls with timers that a test fires. */
function callsOf(...extensions: Extension[]): { calls: ContributorCalls; faults: ExtensionFault[]; fire(): number } {
  const faults: ExtensionFault[] = []
  const timers = new Map<object, () => void>()
  const calls = new ContributorCalls({
    registry: ExtensionRegistry.of(extensions),
    onFault: (fault) => faults.push(fault),
    setTimer: (callback, ms) => {
      expect(ms).toBe(CALLBACK_MS_MAX)
      const timer = {}
      timers.set(timer, callback)
      return timer
    },
    clearTimer: (timer) => void timers.delete(timer),
  })
  const fire = (): number => {
    for (const callback of timers.values()) callback()
    return timers.size
  }
  return { calls, faults, fire }
}

verifies('ext.001', async () => {
  const both = {
    threadContext: () => [{ slot: 'a', text: 'both' }],
    turnInput: () => [{ slot: 'b', text: 'both' }],
  }
  const { calls } = callsOf(
    extension('one', (registrar) => {
      registrar.register('context', both)
      registrar.register('turnInput', both)
    }),
    extension('two', (registrar) => registrar.register('context', {})),
    extension('three', (registrar) => registrar.register('context', { threadContext: async () => [] })),
  )
  expect(calls.all('context').map(({ extension: id }) => id)).toEqual(['one', 'two', 'three'])
  expect(calls.all('turnInput')[0]?.contributor).toBe(both)
  expect([calls.has('turnInput'), calls.has('tools')]).toEqual([true, false])
  const asked: string[] = []
  const said = await calls.gather({
    kind: 'context',
    callback: 'threadContext',
    call: (one, id) => {
      asked.push(id)
      return one.threadContext?.({} as never)
    },
  })
  expect([asked, said]).toEqual([
    ['one', 'two', 'three'],
    [[{ slot: 'a', text: 'both' }], []],
  ])
  expect(
    await calls.first({ kind: 'context', callback: 'threadContext', call: (_, id) => (id === 'two' ? id : undefined) }),
  ).toBe('two')
})

verifies('ext.002', async () => {
  const none = (): void => {}
  const refused = async (...extensions: Extension[]): Promise<string> =>
    createHost({ definitions: [], extensions }).then(
      () => 'made',
      (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
    )
  expect(await refused(extension('a', none), extension('a', none))).toBe(
    'OPTIONS_INVALID: The extensions cannot be installed: Two extensions have the id "a"',
  )
  for (const id of ['', 'A', 'a b', '-a', `a${'b'.repeat(64)}`])
    expect(await refused(extension(id, none)), id).toContain(`"${id}" is no id of an extension`)
  expect(
    await refused(
      extension('throws', () => {
        throw new Error('no licence')
      }),
    ),
  ).toBe('OPTIONS_INVALID: The extensions cannot be installed: no licence')
  let late: (() => void) | undefined
  await using _ = await createHost({
    definitions: [],
    extensions: [
      extension('late', (registrar) => {
        late = () => registrar.register('context', {})
      }),
    ],
  })
  expect(() => late?.()).toThrow('Extension "late" registers after its installation')
})

verifies('ext.003', () => {
  const one = new StoreKey<number>('n')
  const other = new StoreKey<number>('n')
  const store: ExtensionStore = new Store('thread', 't1', [storeEntry(one, 1)])
  expect([store.level, store.levelId, store.get(one), store.get(other)]).toEqual(['thread', 't1', 1, undefined])
  let made = 0
  expect(store.getOrInit(other, () => ++made)).toBe(1)
  expect(store.getOrInit(other, () => ++made)).toBe(1)
  expect([store.insert(one, 5), store.get(one), store.remove(one), store.get(one)]).toEqual([1, 5, 5, undefined])
  const nothing = new StoreKey<undefined>('nothing')
  store.insert(nothing, undefined)
  expect(store.getOrInit(nothing, () => expect.fail('it is there'))).toBeUndefined()
  const full = new Store('turn', 't2')
  for (let count = 0; count < STORE_VALUES_MAX; count++) full.insert(new StoreKey('x'), count)
  expect(() => full.insert(one, 1)).toThrow('The turn store "t2" holds 1024 values already')
})

verifies('ext.004', async () => {
  const hangs = new Promise<never>(() => {})
  const { calls, faults, fire } = callsOf(
    extension('throws', (registrar) =>
      registrar.register('context', {
        threadContext: () => {
          throw new Error('no\nidea')
        },
      }),
    ),
    extension('rejects', (registrar) =>
      registrar.register('context', { threadContext: () => Promise.reject('nothing') }),
    ),
    extension('hangs', (registrar) => registrar.register('context', { threadContext: () => hangs })),
    extension('works', (registrar) =>
      registrar.register('context', { threadContext: () => [{ slot: 's', text: 'here' }] }),
    ),
  )
  const gathering = calls.gather({
    kind: 'context',
    callback: 'threadContext',
    call: (one) => one.threadContext?.({} as never),
  })
  const isDone = gathering.then(() => true)
  await expect
    .poll(() => {
      fire()
      return Promise.race([isDone, false])
    })
    .toBe(true)
  expect(await gathering).toEqual([[{ slot: 's', text: 'here' }]])
  expect(faults).toEqual([
    { extension: 'throws', kind: 'context', callback: 'threadContext', message: 'no idea' },
    { extension: 'rejects', kind: 'context', callback: 'threadContext', message: 'nothing' },
    { extension: 'hangs', kind: 'context', callback: 'threadContext', message: 'it did not answer within 30000 ms' },
  ])
  expect(fire()).toBe(0)
  // Those that nobody waits for, too.
  faults.length = 0
  const told: string[] = []
  calls.tell({
    kind: 'context',
    callback: 'onNews',
    call: (_, id) => {
      told.push(id)
      if (id === 'throws') throw new Error('again')
      if (id === 'rejects') return Promise.reject(new Error('later')) as never
    },
  })
  await expect
    .poll(() => faults.map(({ extension: id, message }) => `${id}: ${message}`))
    .toEqual(['throws: again', 'rejects: later'])
  expect(told).toEqual(['throws', 'rejects', 'hangs', 'works'])
})

verifies('ext.005', async () => {
  const abort = new AbortController()
  const { calls, faults } = callsOf(
    extension('waits', (registrar) =>
      registrar.register('context', { threadContext: () => new Promise<never>(() => {}) }),
    ),
    extension('next', (registrar) => registrar.register('context', { threadContext: () => expect.fail('called') })),
  )
  const gathering = calls.gather({
    kind: 'context',
    callback: 'threadContext',
    signal: abort.signal,
    call: (one) => one.threadContext?.({} as never),
  })
  abort.abort('enough')
  await expect(gathering).rejects.toMatchObject({ code: 'CANCELLED', cause: 'enough' })
  await expect(calls.first({ kind: 'context', callback: 'x', signal: abort.signal, call: () => 1 })).rejects.toThrow()
  expect(faults).toEqual([])
})
