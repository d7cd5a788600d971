// Whether the keyring of this system can be relied upon: asked before anything is, and never by way of a prompt.
import { type KeyringChild, KeyringClient, type KeyringPlatform, keyringEnvironment } from './keyring-client.ts'
import { classifyKeyringFailure, type KeyringFault, type KeyringOutcome } from './keyring-protocol.ts'
import { KEYRING_SERVICE } from './keyring-store.ts'

/** What was found out. `detail` is for a person. */
export type KeyringProbe =
  | { readonly kind: 'usable' }
  | {
      readonly kind: 'unusable'
      readonly because: KeyringFault | 'forgetful' | 'volatile'
      readonly detail: string
    }

/** How it is asked. */
export interface KeyringProbeOptions {
  readonly platform: KeyringPlatform
  /** Default {@link KEYRING_SERVICE}. */
  readonly service?: string
  /** For everything together, in milliseconds. Default 2,000. */
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 2_000
const OUTPUT_CHARS_MAX = 16_384
const SECRETS = 'org.freedesktop.secrets'
const SECRETS_PATH = '/org/freedesktop/secrets'
/** The collection of the most common keyring that lives in memory. */
const VOLATILE_COLLECTION = /\/collection\/session$/

/** One question to the bus, said to each of the programs that may be there. */
interface BusQuestion {
  readonly path: string
  readonly member: 'ReadAlias' | 'Locked'
}
type BusAnswer =
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly because: KeyringFault; readonly detail: string }

/** Writes, reads, compares and removes an item of its own, within two seconds in all. Never rejects. */
export async function probeKeyring(options: KeyringProbeOptions): Promise<KeyringProbe> {
  const { platform, service = KEYRING_SERVICE, timeoutMs = TIMEOUT_MS } = options
  const endsAtMs = platform.now() + timeoutMs
  const leftMs = (): number => Math.max(1, endsAtMs - platform.now())
  if (platform.os === 'linux') {
    const refusal = await refuseCollection(platform, leftMs)
    if (refusal !== undefined) return refusal
  }
  const client = new KeyringClient({ platform, service })
  try {
    return await tryItem(client, platform, leftMs)
  } finally {
    await client.close()
  }
}

async function tryItem(client: KeyringClient, platform: KeyringPlatform, leftMs: () => number): Promise<KeyringProbe> {
  const account = `.probe-${platform.randomBytes(8).toString('hex')}`
  const text = platform.randomBytes(16).toString('hex')
  const written = await client.ask({ kind: 'set', account, text }, leftMs())
  if (written.kind === 'failed') return unusable(written)
  const read = await client.ask({ kind: 'get', account }, leftMs())
  const removed = await client.ask({ kind: 'remove', account }, leftMs())
  if (read.kind === 'failed') return unusable(read)
  if (read.kind !== 'found' || read.text !== text)
    return { kind: 'unusable', because: 'forgetful', detail: 'the keyring took a value and did not give it back' }
  return removed.kind === 'failed' ? unusable(removed) : { kind: 'usable' }
}

function unusable({ because, detail }: KeyringOutcome & { kind: 'failed' }): KeyringProbe {
  return { kind: 'unusable', because, detail }
}

/** What is kept in memory is lost with the next sign-out of the desktop, and a locked keyring would ask a person who is not there. */
async function refuseCollection(platform: KeyringPlatform, leftMs: () => number): Promise<KeyringProbe | undefined> {
  const alias = await askBus(platform, { path: SECRETS_PATH, member: 'ReadAlias' }, leftMs)
  if (alias.kind === 'missing')
    return {
      kind: 'unusable',
      because: 'volatile',
      detail:
        'it cannot be told whether the keyring lives in memory only: neither dbus-send nor gdbus nor busctl is there',
    }
  if (alias.kind === 'failed') return { kind: 'unusable', because: alias.because, detail: alias.detail }
  const path = /\/[A-Za-z0-9_/]*/.exec(alias.text)?.[0] ?? '/'
  if (path === '/')
    return { kind: 'unusable', because: 'absent', detail: 'the keyring has no default collection to keep anything in' }
  if (VOLATILE_COLLECTION.test(path))
    return {
      kind: 'unusable',
      because: 'volatile',
      detail: 'the default collection of the keyring lives in memory only',
    }
  const locked = await askBus(platform, { path, member: 'Locked' }, leftMs)
  if (locked.kind === 'failed') return { kind: 'unusable', because: locked.because, detail: locked.detail }
  return locked.kind === 'said' && /\btrue\b/.test(locked.text)
    ? { kind: 'unusable', because: 'locked', detail: 'the default collection of the keyring is locked' }
    : undefined
}

async function askBus(platform: KeyringPlatform, question: BusQuestion, leftMs: () => number): Promise<BusAnswer> {
  for (const [command, args] of Object.entries(busCommands(question))) {
    const answer = await run(platform, { command, args, timeoutMs: leftMs() })
    if (answer.kind !== 'missing') return answer
  }
  return { kind: 'missing' }
}

function busCommands({ path, member }: BusQuestion): Record<string, readonly string[]> {
  const collection = 'org.freedesktop.Secret.Collection'
  const service = 'org.freedesktop.Secret.Service'
  const get = 'org.freedesktop.DBus.Properties.Get'
  const isAlias = member === 'ReadAlias'
  return {
    'dbus-send': [
      ...['--session', '--print-reply=literal', `--dest=${SECRETS}`, path],
      ...(isAlias ? [`${service}.ReadAlias`, 'string:default'] : [get, `string:${collection}`, 'string:Locked']),
    ],
    gdbus: [
      ...['call', '--session', '--dest', SECRETS, '--object-path', path, '--method'],
      ...(isAlias ? [`${service}.ReadAlias`, 'default'] : [get, collection, 'Locked']),
    ],
    busctl: isAlias
      ? ['--user', 'call', SECRETS, path, service, 'ReadAlias', 's', 'default']
      : ['--user', 'get-property', SECRETS, path, collection, 'Locked'],
  }
}

/** A small program that says one thing. Resolves when it has ended, or could not be started. */
function run(
  platform: KeyringPlatform,
  { command, args, timeoutMs }: { command: string; args: readonly string[]; timeoutMs: number },
): Promise<BusAnswer> {
  const child: KeyringChild = platform.spawn({ command, args, env: { ...keyringEnvironment(platform), LC_ALL: 'C' } })
  let said = ''
  let complained = ''
  child.stdin.on('error', () => {})
  child.stdin.end()
  child.stdout.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(0, OUTPUT_CHARS_MAX)))
  child.stderr.on(
    'data',
    (chunk: Buffer) => (complained = (complained + chunk.toString('utf8')).slice(0, OUTPUT_CHARS_MAX)),
  )
  return new Promise((resolve) => {
    let isLate = false
    const timer = platform.setTimer(() => {
      isLate = true
      if (child.pid !== undefined) platform.kill(child.pid, 'SIGKILL', 'group')
    }, timeoutMs)
    const settle = (answer: BusAnswer): void => {
      platform.clearTimer(timer)
      resolve(answer)
    }
    child.once('error', (error) =>
      settle(
        (error as NodeJS.ErrnoException).code === 'ENOENT'
          ? { kind: 'missing' }
          : { kind: 'failed', because: 'refused', detail: `"${command}" could not be started` },
      ),
    )
    child.once('close', (code) => {
      if (isLate) settle({ kind: 'failed', because: 'no-answer', detail: 'the keyring did not answer in time' })
      else if (code === 0) settle({ kind: 'said', text: said })
      else settle({ kind: 'failed', ...classifyKeyringFailure(complained) })
    })
  })
}
