// The floor plan holds: no violation, every source file was read, and planted violations go red.
import { execFile } from 'node:child_process'
import { glob, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

interface Report {
  modules: { source: string }[]
  summary: { violations: { rule: { name: string }; from: string; to: string }[] }
}

/** A file that breaks one rule each. They are written, seen red, and removed. */
const PLANTED: readonly { file: string; text: string; rule: string }[] = [
  { file: 'packages/host/src/base/planted-wall.ts', text: "import '../set/index.ts'\n", rule: 'floor-plan/base' },
  { file: 'packages/host/src/set/planted-door.ts', text: "import '../base/errors.ts'\n", rule: 'use-the-door' },
  {
    file: 'packages/host/src/planted-room/index.ts',
    text: "import '../base/index.ts'\n",
    rule: 'every-room-is-on-the-plan',
  },
  { file: 'packages/host/src/set/planted/plan.ts', text: "import 'node:fs'\n", rule: 'pure-files' },
  {
    file: 'packages/host/src/set/planted-sdk.ts',
    text: "import '@modelcontextprotocol/client'\n",
    rule: 'sdk-in-auth-only',
  },
  {
    file: 'packages/host/src/set/planted-wire.ts',
    text: "import '@convoke/wire'\n",
    rule: 'wire-in-protocol-and-gateway-only',
  },
  {
    file: 'packages/cli/src/planted-process.ts',
    text: "import 'node:child_process'\n",
    rule: 'processes-in-wire-only',
  },
  {
    file: 'packages/cli/src/planted-deep.ts',
    text: "import '../../host/src/set/index.ts'\n",
    rule: 'products-use-the-public-host',
  },
  {
    file: 'packages/gateway/src/planted-testkit.ts',
    text: "import '@convoke/testkit'\n",
    rule: 'testkit-in-tests-only',
  },
]

const root = resolve(import.meta.dirname, '..')

function cruise(): Promise<Report> {
  return new Promise((done, fail) => {
    const args = ['packages', '--config', '.dependency-cruiser.cjs', '-T', 'json']
    execFile('depcruise', args, { cwd: root, maxBuffer: 256 * 1024 * 1024 }, (error, stdout) => {
      try {
        done(JSON.parse(stdout) as Report)
      } catch {
        fail(error ?? new Error('dependency-cruiser printed no JSON'))
      }
    })
  })
}

async function sources(): Promise<string[]> {
  const files: string[] = []
  for await (const file of glob('packages/*/src/**/*.ts', { cwd: root })) files.push(file.replaceAll('\\', '/'))
  return files.sort()
}

async function checkTree(): Promise<string[]> {
  const { modules, summary } = await cruise()
  const seen = new Set(modules.map(({ source }) => source))
  const unread = (await sources()).filter((file) => !seen.has(file))
  const faults = summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)
  for (const file of unread) faults.push(`not read: ${file}`)
  process.stdout.write(`walls: ${seen.size} modules read, ${faults.length} faults\n`)
  return faults
}

async function checkPlanted(): Promise<string[]> {
  try {
    for (const { file, text } of PLANTED) {
      await mkdir(dirname(resolve(root, file)), { recursive: true })
      await writeFile(resolve(root, file), text, { flag: 'wx' })
    }
    const { summary } = await cruise()
    const red = new Set(summary.violations.map(({ rule, from }) => `${rule.name} ${from}`))
    const missed = PLANTED.filter(({ file, rule }) => !red.has(`${rule} ${file}`))
    process.stdout.write(`walls: ${PLANTED.length - missed.length} of ${PLANTED.length} planted violations went red\n`)
    return missed.map(({ file, rule }) => `planted but not seen: ${rule} (${file})`)
  } finally {
    for (const { file } of PLANTED) await rm(resolve(root, file), { force: true })
    await rm(resolve(root, 'packages/host/src/planted-room'), { recursive: true, force: true })
    await rm(resolve(root, 'packages/host/src/set/planted'), { recursive: true, force: true })
  }
}

const faults = [...(await checkTree()), ...(await checkPlanted())]
for (const fault of faults) process.stdout.write(`  ${fault}\n`)
process.exitCode = faults.length === 0 ? 0 : 1
