// The keyring of the system: a real one in every condition that it can be in, and programs in its place that do what no keyring should.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeContract, verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KeyringError, type KeyringPlatform, KeyringStore, probeKeyring, type StoreLimits } from '../src/store/index.ts'
import { KeyringClient } from '../src/store/keyring-client.ts'
import { type KeyringItems, readParts, removeParts, writeParts } from '../src/store/keyring-parts.ts'
import { classifyKeyringFailure, readWritten, writtenText } from '../src/store/keyring-protocol.ts'
import { startKeyring, type TestKeyring } from './keyring-support.ts'

const LIMITS = { keysMax: 4, valueBytesMax: 16, totalBytesMax: 40 } as const
const refusing: StoreLimits = { ...LIMITS, whenFull: 'refuse' }
const dropping: StoreLimits = { ...LIMITS, whenFull: 'drop-oldest' }
const roomy: StoreLimits = { keysMax: 100, valueBytesMax: 100_000, totalBytesMax: 1_000_000, whenFull: 'refuse' }
/** The time of a probe, on a machine that does much else. */
const PROBE_MS = 20_000
const SECRET = 'the-secret-of-the-test'

let root = ''
let keyring: TestKeyring
let count = 0
const opened: KeyringStore[] = []
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-keyrings-'))
  keyring = await startKeyring()
}, 60_000)
afterAll(async () => {
  for (const store of opened) await store[Symbol.asyncDispose]()
  await keyring?.[Symbol.asyncDispose]()
  await rm(root, { recursive: true, force: true })
})

/** A store with a service of its own unless one is named. */
function storeIn(
  platform: KeyringPlatform,
  options: { service?: string; limits?: StoreLimits; answerMs?: number } = {},
): KeyringStore {
  const service = options.service ?? `convoke test ${++count}`
  const lockDirectory = join(root, 'locks')
  const store = new KeyringStore({ platform, lockDirectory, limits: roomy, ...options, service })
  opened.push(store)
  return store
}

let nowMs = 1_000
const known = new Map<string, KeyringStore>()
/** One program serves the whole contract; each test finds the store empty. */
async function emptied(service: string, limits: StoreLimits): Promise<KeyringStore> {
  const platform = { ...keyring.platform, dateMs: () => ++nowMs }
  const store = known.get(service) ?? storeIn(platform, { service, limits })
  known.set(service, store)
  for (const key of await store.keys()) await store.remove(key)
  return store
}
storeContract('the real keyring', {
  refusing: () => emptied('refusing', refusing),
  dropping: () => emptied('dropping', dropping),
})

/** A platform that starts something else in place of the keyring program. */
function withProgram(platform: KeyringPlatform, program: string): KeyringPlatform {
  return {
    ...platform,
    spawn: (spec) =>
      platform.spawn(spec.args[0]?.includes('keyring-program') === true ? { ...spec, args: [program] } : spec),
  }
}

verifies('auth.020', async () => {
  expect(await probeKeyring({ platform: keyring.platform, service: 'probed', timeoutMs: PROBE_MS })).toEqual({
    kind: 'usable',
  })
  // Nothing of the probe is left.
  const client = new KeyringClient({ platform: keyring.platform, service: 'probed' })
  expect(await client.ask({ kind: 'list' }, PROBE_MS)).toEqual({ kind: 'listed', items: [] })
  await client.close()
})

verifies('auth.021', async () => {
  const { DBUS_SESSION_BUS_ADDRESS: _, XDG_RUNTIME_DIR: __, ...env } = keyring.platform.env
  const platform = { ...keyring.platform, env }
  expect(await probeKeyring({ platform, timeoutMs: PROBE_MS })).toMatchObject({ kind: 'unusable', because: 'absent' })
  const store = storeIn(platform)
  await expect(store.get('a')).rejects.toMatchObject({ name: 'KeyringError', failure: 'failed', because: 'absent' })
  await using empty = await startKeyring('no-collection')
  expect(await probeKeyring({ platform: empty.platform, timeoutMs: PROBE_MS })).toMatchObject({ because: 'absent' })
})

verifies(
  ['auth.022', 'auth.026'],
  async () => {
    await using hanging = await startKeyring()
    const store = storeIn(hanging.platform)
    await store.set('a', 'kept')
    nodePlatform.kill(hanging.pid, 'SIGSTOP' as NodeJS.Signals, 'process')
    const beganAtMs = performance.now()
    expect(await probeKeyring({ platform: hanging.platform })).toMatchObject({
      kind: 'unusable',
      because: 'no-answer',
    })
    expect(performance.now() - beganAtMs).toBeLessThan(10_000)
    const impatient = storeIn(hanging.platform, { service: 'impatient', answerMs: 1_500 })
    const failures = await Promise.allSettled([impatient.get('a'), impatient.keys(), impatient.set('b', 'x')])
    for (const failure of failures)
      expect(failure).toMatchObject({ status: 'rejected', reason: { name: 'KeyringError', because: 'no-answer' } })
    nodePlatform.kill(hanging.pid, 'SIGCONT' as NodeJS.Signals, 'process')
    expect(await store.get('a')).toMatchObject({ kind: 'found', value: 'kept' })
    expect(await storeIn(hanging.platform, { service: 'impatient' }).get('a')).toEqual({ kind: 'absent' })
    // A program that does not even notice the end of its input is killed.
    const deaf = join(root, 'deaf.mjs')
    writeFileSync(deaf, 'for (;;);')
    expect(await probeKeyring({ platform: withProgram(keyring.platform, deaf) })).toMatchObject({
      because: 'no-answer',
    })
  },
  90_000,
)

verifies('auth.023', async () => {
  const program = join(root, 'forgetful.mjs')
  writeFileSync(
    program,
    `import { createInterface } from 'node:readline'
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, order } = JSON.parse(line)
      console.log('a library says something')
      console.log(JSON.stringify({ id, outcome: { kind: order.kind === 'get' ? 'absent' : 'done' } }))
    }`,
  )
  const platform = withProgram(keyring.platform, program)
  expect(await probeKeyring({ platform, timeoutMs: PROBE_MS })).toMatchObject({ because: 'forgetful' })
})

verifies('auth.024', async () => {
  await using volatile = await startKeyring('volatile')
  expect(await probeKeyring({ platform: volatile.platform, timeoutMs: PROBE_MS })).toMatchObject({
    kind: 'unusable',
    because: 'volatile',
  })
  // Without a program that could tell, nothing is trusted to it either.
  const { platform } = keyring
  const blind = { ...platform, env: { ...platform.env, PATH: root } }
  expect(await probeKeyring({ platform: blind, timeoutMs: PROBE_MS })).toMatchObject({
    because: 'volatile',
    detail: expect.stringContaining('dbus-send'),
  })
})

verifies('auth.025', async () => {
  await using locked = await startKeyring('locked')
  const started: string[] = []
  const { spawn } = locked.platform
  const platform: KeyringPlatform = {
    ...locked.platform,
    spawn: (spec) => {
      started.push(spec.command)
      return spawn(spec)
    },
  }
  expect(await probeKeyring({ platform, timeoutMs: PROBE_MS })).toMatchObject({ kind: 'unusable', because: 'locked' })
  // Writing would have shown a prompt to whoever sits there.
  expect(started).toEqual(['dbus-send', 'dbus-send'])
  const store = storeIn(locked.platform, { answerMs: PROBE_MS })
  await expect(store.set('a', 'x')).rejects.toThrow(KeyringError)
})

verifies('auth.027', async () => {
  const alone = join(root, 'alone')
  mkdirSync(alone)
  const source = join(import.meta.dirname, '../src/store')
  for (const file of ['keyring-program.ts', 'keyring-parts.ts', 'keyring-protocol.ts'])
    copyFileSync(join(source, file), join(alone, file))
  const platform = withProgram(keyring.platform, join(alone, 'keyring-program.ts'))
  expect(await probeKeyring({ platform, timeoutMs: PROBE_MS })).toMatchObject({ because: 'not-installed' })
})

verifies('auth.028', async () => {
  const started: number[] = []
  const seen: string[] = []
  const platform: KeyringPlatform = {
    ...keyring.platform,
    spawn: (spec) => {
      const child = keyring.platform.spawn(spec)
      seen.push([spec.command, ...spec.args, ...Object.values(spec.env)].join(' '))
      if (child.pid !== undefined) started.push(child.pid)
      return child
    },
  }
  const client = new KeyringClient({ platform, service: 'idle', idleMs: 200 })
  expect(await client.ask({ kind: 'set', account: 'a', text: SECRET }, PROBE_MS)).toEqual({ kind: 'done' })
  const [pid = 0] = started
  expect(nodePlatform.processes.variable(pid, 'PLANTED')).toBeUndefined()
  expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(SECRET)
  expect(seen.join('\n')).not.toContain(SECRET)
  expect(seen.join('\n')).not.toContain('not for the keyring')
  const runs = (): boolean => {
    const facts = nodePlatform.processes.facts(pid)
    return facts !== undefined && !facts.zombie
  }
  await expect.poll(runs, { timeout: 20_000 }).toBe(false)
  // It is started again when it is needed.
  expect(await client.ask({ kind: 'get', account: 'a' }, PROBE_MS)).toEqual({ kind: 'found', text: SECRET })
  expect(started).toHaveLength(2)
  await client.close()
})

verifies('auth.029', async () => {
  const service = 'shared'
  const writers = Array.from({ length: 4 }, () => storeIn(keyring.platform, { service }))
  await Promise.all(writers.map((store, index) => store.set(`of-${index}`, `value ${index}`)))
  const swaps = await Promise.all(writers.map((store, index) => store.compareAndSwap('one', undefined, `${index}`)))
  expect(swaps.filter(Boolean)).toHaveLength(1)
  const [reader] = writers
  expect(await reader?.keys()).toEqual(['of-0', 'of-1', 'of-2', 'of-3', 'one'])
  expect(await reader?.get('one')).toMatchObject({ value: `${swaps.indexOf(true)}` })
  await reader?.set('long', 'ü€𝄞'.repeat(3_000))
  expect(await reader?.get('long')).toMatchObject({ kind: 'found', value: 'ü€𝄞'.repeat(3_000) })
})

verifies('auth.030', async () => {
  const service = 'of others'
  const store = storeIn({ ...keyring.platform, os: 'win32' }, { service })
  const text = '𝄞'.repeat(2_000)
  await store.set('long', text)
  await store.set('short', 'x')
  const client = new KeyringClient({ platform: keyring.platform, service })
  const listed = await client.ask({ kind: 'list' }, PROBE_MS)
  const items = listed.kind === 'listed' ? listed.items : []
  expect(items.length).toBeGreaterThan(4)
  // What an item holds on Windows, as UTF-16: two characters of four bytes are four bytes as well.
  for (const { bytes } of items) expect(bytes).toBeLessThanOrEqual(2_560)
  expect(await store.get('long')).toMatchObject({ value: text })
  expect(await store.keys()).toEqual(['long', 'short'])
  await store.set('long', 'y')
  await store.remove('short')
  expect(await client.ask({ kind: 'list' }, PROBE_MS)).toMatchObject({ items: [{ account: 'long' }] })
  await client.close()
})

describe('a value in parts', () => {
  /** Items in memory; `before` is told of each step. */
  function itemsOf(
    before: (step: string) => Promise<void> = async () => {},
  ): KeyringItems & { map: Map<string, string> } {
    const map = new Map<string, string>()
    return {
      map,
      get: async (account) => {
        await before(`get ${account}`)
        return map.get(account)
      },
      set: async (account, text) => {
        await before(`set ${account}`)
        map.set(account, text)
      },
      remove: async (account) => {
        await before(`remove ${account}`)
        map.delete(account)
      },
      accounts: async () => [...map.keys()],
    }
  }

  test('is read old or new, wherever its writer has got to or was killed', async () => {
    const texts = ['a'.repeat(25), 'b'.repeat(31), 'c'] as const
    for (let killedAt = 0; killedAt < 14; killedAt++) {
      let step = 0
      let isWriting = false
      const seen: unknown[] = []
      const items = itemsOf(async () => {
        if (isWriting && step++ === killedAt) throw new Error('killed')
      })
      await writeParts(items, 'a', { text: texts[0], partChars: 10 })
      isWriting = true
      await writeParts(items, 'a', { text: texts[1], partChars: 10 }).catch(() => {})
      isWriting = false
      const reading = await readParts(items, 'a')
      seen.push(reading)
      expect([texts[0], texts[1]].map((text) => ({ kind: 'found', text }))).toContainEqual(reading)
      // The next writer takes away what a killed one has left.
      await writeParts(items, 'a', { text: texts[2], partChars: 10 })
      expect([...items.map]).toEqual([['a', texts[2]]])
      await removeParts(items, 'a', { partChars: 10 })
      expect([...items.map]).toEqual([])
    }
  })

  test('is read again when a writer comes between, and damaged when a part is gone for good', async () => {
    let turn = 0
    const items = itemsOf(async (step) => {
      if (/^get a\./.test(step) && turn++ === 1) await writeParts(items, 'a', { text: 'n'.repeat(40), partChars: 10 })
    })
    await writeParts(items, 'a', { text: 'o'.repeat(40), partChars: 10 })
    expect(await readParts(items, 'a')).toEqual({ kind: 'found', text: 'n'.repeat(40) })
    const [part = ''] = [...items.map.keys()].filter((account) => account.startsWith('a.'))
    items.map.delete(part)
    expect(await readParts(items, 'a')).toEqual({ kind: 'damaged', because: 'some of its parts are missing' })
  })
})

test.each([
  ['Platform failure: DBus error: Did not receive a reply. Possible causes include: …', 'no-answer'],
  ["Couldn't access platform storage: Secret Service: unlock prompt was dismissed", 'locked'],
  ['zbus error: org.freedesktop.Secret.Error.IsLocked: Cannot get secret of a locked object', 'locked'],
  ['Platform failure: DBus error: Using X11 for dbus-daemon autolaunch was disabled at compile time', 'absent'],
  ['zbus error: Failed to connect to address `unix:path=/run/user/0/bus`', 'absent'],
  ["Couldn't access platform storage: Secret Service: no result found", 'absent'],
  ["Cannot find package '@napi-rs/keyring' imported from …", 'not-installed'],
  ['anything else', 'refused'],
])('a failure that says %j', (text, because) => {
  expect(classifyKeyringFailure(text)).toEqual({ because, detail: text })
})

test('what is written with a value comes back with it, and what others have written is told apart', async () => {
  expect(readWritten(writtenText('1 2 x', 17))).toEqual({ value: '1 2 x', writtenAtMs: 17 })
  expect(readWritten(writtenText('', 0))).toEqual({ value: '', writtenAtMs: 0 })
  expect(readWritten('password')).toBeUndefined()
  const client = new KeyringClient({ platform: keyring.platform, service: 'foreign' })
  await client.ask({ kind: 'set', account: 'a', text: 'password' }, PROBE_MS)
  await client.close()
  expect(await storeIn(keyring.platform, { service: 'foreign' }).get('a')).toEqual({
    kind: 'damaged',
    because: 'another program has written it',
  })
})
