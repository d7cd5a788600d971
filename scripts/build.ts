// Compiles the packages, and makes their few files and the command's single ones.
import './assert-node.ts'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

function run(command: string, ...args: string[]): void {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

run('tsc', '-b')
run(process.execPath, '--conditions=@convoke/source', resolve(root, 'scripts/bundle-packages.ts'))
const bundle = resolve(root, 'packages/cli/scripts/bundle.ts')
if (existsSync(bundle)) run(process.execPath, '--conditions=@convoke/source', bundle)
