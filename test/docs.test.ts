import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allSnippets, type Snippet } from './snippets.ts'

const root = resolve(import.meta.dirname, '..')
const snippets = await allSnippets(root)
const programs = snippets.filter(({ language }) => language === 'ts')
const sessions = snippets.filter(({ language }) => language === 'console')
const CONFIG = {
  mcpServers: {
    memory: { command: 'node', args: [join(root, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js')] },
    everything: {
      command: 'node',
      args: [join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')],
    },
  },
}
let folder = ''

/** A folder inside the workspace, so that the packages resolve; with a configuration, so that commands have servers. */
beforeAll(async () => {
  await mkdir(join(root, '.cache'), { recursive: true })
  folder = await mkdtemp(join(root, '.cache', 'snippets-'))
  await mkdir(join(folder, 'convoke'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'convoke', 'convoke.json'), JSON.stringify(CONFIG))
  await symlink(join(folder, 'convoke', 'convoke.json'), join(folder, 'convoke.json'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

interface Ran {
  code: number
  output: string
}

function run(command: string, args: readonly string[]): Promise<Ran> {
  return new Promise((done) => {
    const env = {
      ...process.env,
      XDG_CONFIG_HOME: folder,
      XDG_STATE_HOME: folder,
      XDG_CACHE_HOME: folder,
      TMPDIR: tmpdir(),
    }
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    child.once('error', (error) => done({ code: 127, output: error.message }))
    child.once('close', (code) => done({ code: code ?? 1, output }))
  })
}

async function writeProgram({ text, place }: Snippet): Promise<string> {
  const file = join(folder, `${place.replace(/[^a-zA-Z0-9]+/g, '-')}.ts`)
  await writeFile(file, `${text}\nexport {}\n`)
  return file
}

describe('documentation', () => {
  verifies(
    'house.051',
    async () => {
      for (const one of programs) await writeProgram(one)
      const options = {
        extends: join(root, 'tsconfig.check.json'),
        compilerOptions: { types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
        include: ['*.ts'],
      }
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options))
      expect(programs.length).toBeGreaterThan(0)
      expect(await run('tsc', ['-p', folder])).toEqual({ code: 0, output: '' })
    },
    120_000,
  )

  test.each(programs.filter(({ note }) => !note.includes('no-run')))(
    'the example at $place runs',
    async (snippet) => {
      const file = await writeProgram(snippet)
      const ran = await run(process.execPath, ['--conditions=@convoke/source', file])
      expect(ran, ran.output).toMatchObject({ code: 0 })
    },
    90_000,
  )

  test.each(sessions)(
    'the commands at $place do what they say',
    async ({ text }) => {
      const commands = text.split('\n').filter((line) => line.startsWith('$ convoke '))
      for (const line of commands) {
        const [typed = '', promised] = line.slice(2).split(/\s+# exit /)
        const script = typed.replace(/^convoke/, `"${process.execPath}" "${join(root, 'packages/cli/bin/convoke.js')}"`)
        const ran = await run('sh', ['-c', script])
        expect(ran.code, `${line}\n${ran.output}`).toBe(Number(promised ?? 0))
      }
    },
    120_000,
  )
})
