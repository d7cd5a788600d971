// A real keyring for tests: gnome-keyring on a bus of its own, which the test process itself never joins.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@convoke/wire'
import type { KeyringPlatform } from '../src/store/index.ts'
import type { KeyringCondition } from './keyring-bus.ts'

/** Made for this: a bus that ends with what it runs. */
const BUS = 'dbus-run-session'

/** A keyring, and a platform whose programs find it. Hold it with `await using`. */
export interface TestKeyring extends AsyncDisposable {
  readonly platform: KeyringPlatform
  readonly directory: string
  /** The daemon. */
  readonly pid: number
}

/** @throws {Error} that says what has to be installed. */
export async function startKeyring(condition: KeyringCondition = 'unlocked'): Promise<TestKeyring> {
  const directory = await mkdtemp(join(tmpdir(), 'convoke-keyring-'))
  const folder = (name: string): string => {
    const path = join(directory, name)
    mkdirSync(path, { mode: 0o700 })
    return path
  }
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder('home'),
    XDG_DATA_HOME: folder('data'),
    XDG_RUNTIME_DIR: folder('run'),
    TMPDIR: folder('tmp'),
  }
  const program = join(import.meta.dirname, 'keyring-bus.ts')
  const child = spawn(BUS, ['--', process.execPath, program, condition], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.on('error', () => {})
  const close = async (): Promise<void> => {
    await ended(child)
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const { address, pid } = JSON.parse(await firstLine(child)) as { address: string; pid: number }
    return {
      platform: { ...nodePlatform, env: { ...env, DBUS_SESSION_BUS_ADDRESS: address, PLANTED: 'not for the keyring' } },
      directory,
      pid,
      [Symbol.asyncDispose]: async () => {
        nodePlatform.kill(pid, 'SIGCONT', 'process')
        await close()
      },
    }
  } catch (cause) {
    await close()
    throw new Error('These tests need a real keyring: apt-get install gnome-keyring dbus-daemon dbus-bin', { cause })
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = ''
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the keyring ended with ${code}`)))
  })
  failed.catch(() => {})
  while (!text.includes('\n')) {
    if (child.stdout === null) throw new Error('no pipe')
    const [chunk] = (await Promise.race([once(child.stdout, 'data'), failed])) as [Buffer]
    text += chunk.toString('utf8')
  }
  return text
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.stdin?.end()
  await gone
}
