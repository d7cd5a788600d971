// The packages install as promised: publint and attw on what `npm pack` would publish.
import './assert-node.ts'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

function run(command: string, args: readonly string[], cwd: string): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  return { ok: status === 0, output: `${stdout}${stderr}` }
}

async function check(directory: string, tarballs: string): Promise<string | undefined> {
  const packed = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', tarballs], directory)
  if (!packed.ok) return packed.output
  const tarball = join(tarballs, packed.output.trim().split('\n').at(-1) ?? '')
  const lint = run('publint', ['run', tarball, '--strict'], directory)
  if (!lint.ok) return lint.output
  const types = run('attw', [tarball, '--profile', 'esm-only', '--no-color', '--no-emoji'], directory)
  return types.ok ? undefined : types.output
}

const tarballs = await mkdtemp(join(tmpdir(), 'convoke-packages-'))
try {
  for (const name of (await readdir(join(root, 'packages'))).sort()) {
    const directory = join(root, 'packages', name)
    const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as { private?: boolean }
    if (manifest.private === true) continue
    const fault = await check(directory, tarballs)
    process.stdout.write(`packages: @convoke/${name} ${fault === undefined ? 'ok' : `failed\n${fault}`}\n`)
    if (fault !== undefined) process.exitCode = 1
  }
} finally {
  await rm(tarballs, { recursive: true, force: true })
}
