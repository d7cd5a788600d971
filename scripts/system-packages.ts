// Programs of the system that tests need, and that npm cannot bring: installed where that can be done without asking, named where it cannot.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A real keyring on a bus of its own, and a way to ask it which collection it keeps things in; with the packages of Debian that bring them. */
const NEEDED: Readonly<Record<string, string>> = {
  'gnome-keyring-daemon': 'gnome-keyring',
  'dbus-run-session': 'dbus-daemon',
  'dbus-send': 'dbus-bin',
}
const INSTALL_TIMEOUT_MS = 300_000

/** Installs what is missing through apt, as root on Debian and its kin; says otherwise what is missing. The tests that need it fail then, and say so, too. */
export function ensureSystemPackages(): void {
  if (process.platform !== 'linux') return
  const packages = Object.entries(NEEDED).flatMap(([program, name]) => (isInstalled(program) ? [] : [name]))
  if (packages.length === 0) return
  const list = packages.join(' ')
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) {
    process.stdout.write(`The tests need ${list}. On Debian and its kin: sudo apt-get install ${list}\n`)
    return
  }
  process.stdout.write(`installing ${list}\n`)
  const isDone = run(['update', '-qq']) && run(['install', '-y', '-qq', '--no-install-recommends', ...packages])
  if (!isDone) process.stdout.write(`${list} could not be installed through apt\n`)
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
}

function run(args: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  return spawnSync('apt-get', args, { stdio: [...stdio], env, timeout: INSTALL_TIMEOUT_MS }).status === 0
}
