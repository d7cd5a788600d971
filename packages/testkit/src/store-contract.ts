// What every store of kept values has to do, whatever it keeps them in.
import { describe, expect, test } from 'vitest'

/** The part of a store that the contract speaks of. */
export interface ContractStore {
  get(key: string): Promise<{ readonly kind: string; readonly value?: string }>
  set(key: string, value: string): Promise<void>
  remove(key: string): Promise<void>
  keys(prefix?: string): Promise<readonly string[]>
  compareAndSwap(key: string, expected: string | undefined, value: string | undefined): Promise<boolean>
  lock(key: string, options?: { readonly waitMs?: number; readonly signal?: AbortSignal }): Promise<ContractLock>
}

/** A lock of a store. */
export interface ContractLock extends AsyncDisposable {
  isHeld(): Promise<boolean>
}

/** A store that keeps at most 4 keys, 16 bytes in a value and 40 bytes in all. */
export interface ContractStores {
  /** Refuses what does not fit. */
  refusing(): Promise<ContractStore>
  /** Lets go of what was written longest ago. */
  dropping(): Promise<ContractStore>
}

/** Runs the contract against the stores of one kind. */
export function storeContract(name: string, stores: ContractStores): void {
  const failure = (kind: string): object => expect.objectContaining({ name: 'StoreError', failure: kind })
  const lockFailure = (kind: string): object => expect.objectContaining({ name: 'LockError', failure: kind })

  describe(`a store of ${name}`, () => {
    test('gives back what was set last, and nothing for what was removed or never there', async () => {
      const store = await stores.refusing()
      expect(await store.get('a')).toEqual({ kind: 'absent' })
      await store.set('a', 'one')
      await store.set('a', 'zwei ü')
      expect(await store.get('a')).toMatchObject({ kind: 'found', value: 'zwei ü' })
      await store.set('empty', '')
      expect(await store.get('empty')).toMatchObject({ kind: 'found', value: '' })
      await store.remove('a')
      await store.remove('a')
      expect(await store.get('a')).toEqual({ kind: 'absent' })
    })

    test('lists its keys in order, all or those that begin alike', async () => {
      const store = await stores.refusing()
      for (const key of ['b-1', 'a_2', 'a_1']) await store.set(key, key)
      expect(await store.keys()).toEqual(['a_1', 'a_2', 'b-1'])
      expect(await store.keys('a_')).toEqual(['a_1', 'a_2'])
      expect(await store.keys('c')).toEqual([])
    })

    test.each(['', 'A', 'a/b', '../a', '.a', 'a.b', '-a', 'a b', 'ä', 'a\u0000', 'a'.repeat(129)])(
      'refuses the key %j',
      async (key) => {
        const store = await stores.refusing()
        await expect(store.set(key, 'x')).rejects.toEqual(failure('key-invalid'))
        await expect(store.get(key)).rejects.toEqual(failure('key-invalid'))
        await expect(store.remove(key)).rejects.toEqual(failure('key-invalid'))
        await expect(store.compareAndSwap(key, undefined, 'x')).rejects.toEqual(failure('key-invalid'))
        expect(await store.keys()).toEqual([])
      },
    )

    test('takes a key of 128 characters and a value of exactly the limit, and not a byte more', async () => {
      const store = await stores.refusing()
      const key = 'k'.repeat(128)
      await store.set(key, 'ü'.repeat(8))
      expect(await store.get(key)).toMatchObject({ kind: 'found', value: 'ü'.repeat(8) })
      await expect(store.set(key, 'ü'.repeat(8).concat('x'))).rejects.toEqual(failure('too-large'))
      await expect(store.compareAndSwap(key, 'ü'.repeat(8), 'x'.repeat(17))).rejects.toEqual(failure('too-large'))
      expect(await store.get(key)).toMatchObject({ value: 'ü'.repeat(8) })
    })

    test('refuses a key too many and bytes too many, but not another value for a key it has', async () => {
      const store = await stores.refusing()
      for (const key of ['a', 'b', 'c', 'd']) await store.set(key, '12345678')
      await expect(store.set('e', '')).rejects.toEqual(failure('full'))
      await store.set('a', '1234567890123456')
      await expect(store.set('b', '123456789')).rejects.toEqual(failure('full'))
      expect(await store.get('b')).toMatchObject({ value: '12345678' })
      await store.remove('c')
      await store.set('b', '123456789')
      expect(await store.keys()).toEqual(['a', 'b', 'd'])
    })

    test('lets go of what was written longest ago, and of no more than it must', async () => {
      const store = await stores.dropping()
      for (const key of ['a', 'b', 'c', 'd']) await store.set(key, '12345678')
      await store.set('a', '87654321')
      await store.set('e', '12345678')
      expect(await store.keys()).toEqual(['a', 'c', 'd', 'e'])
      await store.set('f', '1234567890123456')
      expect(await store.keys()).toEqual(['a', 'd', 'e', 'f'])
      await store.set('d', '1234567890123456')
      expect(await store.keys()).toEqual(['d', 'e', 'f'])
    })

    test('swaps a value only for the one that was expected', async () => {
      const store = await stores.refusing()
      expect(await store.compareAndSwap('a', 'x', 'y')).toBe(false)
      expect(await store.compareAndSwap('a', undefined, 'one')).toBe(true)
      expect(await store.compareAndSwap('a', undefined, 'two')).toBe(false)
      expect(await store.compareAndSwap('a', 'one', 'two')).toBe(true)
      expect(await store.compareAndSwap('a', 'one', 'three')).toBe(false)
      expect(await store.get('a')).toMatchObject({ value: 'two' })
    })

    test('removes a value only if it is the one that was expected', async () => {
      const store = await stores.refusing()
      expect(await store.compareAndSwap('a', undefined, undefined)).toBe(true)
      await store.set('a', 'one')
      expect(await store.compareAndSwap('a', undefined, undefined)).toBe(false)
      expect(await store.compareAndSwap('a', 'two', undefined)).toBe(false)
      expect(await store.get('a')).toMatchObject({ value: 'one' })
      expect(await store.compareAndSwap('a', 'one', undefined)).toBe(true)
      expect(await store.get('a')).toEqual({ kind: 'absent' })
      expect(await store.compareAndSwap('a', 'one', undefined)).toBe(false)
      expect(await store.keys()).toEqual([])
    })

    test('a lock has one holder, who may swap and read, and the next one gets it when it is let go', async () => {
      const store = await stores.refusing()
      const first = await store.lock('a')
      expect(await first.isHeld()).toBe(true)
      await expect(store.lock('a', { waitMs: 0 })).rejects.toEqual(lockFailure('busy'))
      await expect(store.lock('a', { waitMs: 50 })).rejects.toEqual(lockFailure('busy'))
      expect(await store.compareAndSwap('a', undefined, 'one')).toBe(true)
      await store.set('a', 'two')
      expect(await store.get('a')).toMatchObject({ value: 'two' })
      const second = store.lock('a')
      await first[Symbol.asyncDispose]()
      await first[Symbol.asyncDispose]()
      expect(await first.isHeld()).toBe(false)
      await using held = await second
      expect(await held.isHeld()).toBe(true)
      // Nothing of a lock is a key.
      expect(await store.keys()).toEqual(['a'])
    })

    test('locks of different keys do not wait for each other', async () => {
      const store = await stores.refusing()
      await using _ = await store.lock('a')
      await using other = await store.lock('b', { waitMs: 0 })
      expect(await other.isHeld()).toBe(true)
      await expect(store.lock('A')).rejects.toEqual(failure('key-invalid'))
    })

    test('lets one of many lockers in at a time', async () => {
      const store = await stores.refusing()
      let inside = 0
      let seen = 0
      const lockers = Array.from({ length: 8 }, async () => {
        await using _ = await store.lock('a')
        seen = Math.max(seen, ++inside)
        await store.set('a', 'x')
        inside -= 1
      })
      await Promise.all(lockers)
      expect(seen).toBe(1)
    })

    test('an abort ends the waiting for a lock, and takes nothing from the others', async () => {
      const store = await stores.refusing()
      const reason = new Error('enough')
      const first = await store.lock('a')
      const abort = new AbortController()
      const second = store.lock('a', { signal: abort.signal })
      const third = store.lock('a')
      abort.abort(reason)
      await expect(second).rejects.toMatchObject({ name: 'HostError', code: 'CANCELLED', cause: reason })
      await expect(store.lock('b', { signal: abort.signal })).rejects.toMatchObject({ code: 'CANCELLED' })
      await first[Symbol.asyncDispose]()
      await using held = await third
      expect(await held.isHeld()).toBe(true)
      await using _ = await store.lock('b', { waitMs: 0 })
    })

    test('lets exactly one of many swaps at once succeed', async () => {
      const store = await stores.refusing()
      const swaps = await Promise.all(
        Array.from({ length: 20 }, (_, n) => store.compareAndSwap('a', undefined, `${n}`)),
      )
      expect(swaps.filter(Boolean)).toHaveLength(1)
      expect(await store.get('a')).toMatchObject({ value: `${swaps.indexOf(true)}` })
    })

    test('keeps its limits also when everything is set at once', async () => {
      const store = await stores.refusing()
      const keys = Array.from({ length: 12 }, (_, n) => `key-${n}`)
      const ends = await Promise.allSettled(keys.map((key) => store.set(key, 'x')))
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
      expect(await store.keys()).toHaveLength(4)
    })

    test('ends with one of the values that were set at once', async () => {
      const store = await stores.refusing()
      await Promise.all(Array.from({ length: 20 }, (_, n) => store.set('a', `value ${n}`)))
      expect(await store.get('a')).toMatchObject({ kind: 'found', value: expect.stringMatching(/^value \d+$/) })
    })
  })
}
