// Runs below `dbus-run-session`: a real keyring on a bus of its own, in the condition that its argument names. Tells where the bus is, and ends with its input.
import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'

/** In which condition a keyring is. */
export type KeyringCondition = 'unlocked' | 'locked' | 'volatile' | 'no-collection'

const [condition = 'unlocked'] = process.argv.slice(2)
const SERVICE = 'org.freedesktop.Secret.Service'
const LOGIN = '/org/freedesktop/secrets/collection/login'
const SESSION = '/org/freedesktop/secrets/collection/session'

async function bus(destination: string, path: string, ...rest: readonly string[]): Promise<string> {
  const args = ['--session', '--print-reply=literal', `--dest=${destination}`, path, ...rest]
  return (await promisify(execFile)('dbus-send', args)).stdout
}
const secrets = (...rest: readonly string[]): Promise<string> =>
  bus('org.freedesktop.secrets', '/org/freedesktop/secrets', ...rest)
/** Asks the bus itself: asking the keyring would start another one. */
const isThere = async (): Promise<boolean> =>
  /true/.test(
    await bus(
      'org.freedesktop.DBus',
      '/org/freedesktop/DBus',
      'org.freedesktop.DBus.NameHasOwner',
      'string:org.freedesktop.secrets',
    ),
  )

// Without a password at its start there is only the collection that lives in memory, and no default.
const unlock = condition === 'no-collection' ? [] : ['--unlock']
const DAEMON = 'gnome-keyring-daemon'
const daemon = spawn(DAEMON, ['--foreground', ...unlock, '--components=secrets'], {
  stdio: ['pipe', 'ignore', 'ignore'],
})
daemon.stdin.end('password')
while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 20))
while (unlock.length > 0 && !(await secrets(`${SERVICE}.ReadAlias`, 'string:default')).includes('login'))
  await new Promise((resolve) => setTimeout(resolve, 20))
switch (condition) {
  case 'volatile':
    await secrets(`${SERVICE}.SetAlias`, 'string:default', `objpath:${SESSION}`)
    break
  case 'locked':
    await secrets(`${SERVICE}.Lock`, `array:objpath:${LOGIN}`)
    break
}
process.stdout.write(`${JSON.stringify({ address: process.env['DBUS_SESSION_BUS_ADDRESS'], pid: daemon.pid })}\n`)
process.stdin.resume()
process.stdin.on('end', () => {
  daemon.kill('SIGKILL')
  process.exit(0)
})
