import { readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CommandError } from '../src/command-error.ts'
import { EXIT_MEANINGS } from '../src/exit-codes.ts'
import { EXIT } from '../src/index.ts'
import { runProgram } from '../src/program.ts'
import { VERSION } from '../src/version.ts'
import { BIN, type Ended, Home } from './command.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

verifies('command.001', async () => {
  const spy = join(home.folder, 'spy.cjs')
  await writeFile(
    spy,
    `const { Module } = require('node:module'); const load = Module._load; const seen = []
     Module._load = function (name) { seen.push(name); return load.apply(this, arguments) }
     process.on('exit', () => process.stderr.write(JSON.stringify(seen)))`,
  )
  const { code, stdout, stderr } = await home.startProgram(process.execPath, ['--require', spy, BIN, '--version']).ended
  expect([code, stdout]).toEqual([0, `${VERSION}\n`])
  expect(JSON.parse(stderr)).toEqual([BIN])
  await rm(spy)
})

test('has one version: of the package, of the entry and of the program', async () => {
  const manifest = JSON.parse(await readFile(resolve(BIN, '../../package.json'), 'utf8')) as { version: string }
  expect(VERSION).toBe(manifest.version)
  expect((await home.run(['--config', 'x', '--version'])).stdout).toBe(`${VERSION}\n`)
})

verifies('command.002', async () => {
  const text = await readFile(BIN, 'utf8')
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').replace(/'(?:[^'\\\n]|\\.)*'/g, "''")
  expect(code).not.toMatch(/=>|`|\b(const|let|class|async|await|import|export)\b|\?\.|\?\?|\.\.\./)

  const asNode = async (version: string): Promise<[number | null, string]> => {
    const fake = join(home.folder, 'fake.cjs')
    await writeFile(fake, `Object.defineProperty(process, 'version', { value: ${JSON.stringify(version)} })`)
    const ended = await home.startProgram(process.execPath, ['--require', fake, BIN, '--version']).ended
    return [ended.code, ended.stderr]
  }
  for (const version of [
    'v0.12.0',
    'v12.22.1',
    'v18.20.0',
    'v20.20.2',
    'v22.23.3',
    'v23.9.0',
    'v24.22.0',
    'v25.9.9',
    'v26.12.0',
  ]) {
    const [exit, stderr] = await asNode(version)
    expect([version, exit]).toEqual([version, EXIT.configuration])
    expect(stderr).toContain(`Node ${version}`)
    expect(stderr).toMatch(/install Node 24\.22\.1 or later/)
  }
  for (const version of ['v22.23.4', 'v22.24.0', 'v24.22.1', 'v24.30.0', 'v26.12.1', 'v27.0.0', 'v30.1.0-nightly2']) {
    expect(await asNode(version)).toEqual([0, ''])
  }
})

verifies('command.054', async () => {
  const fake = join(home.folder, 'old.cjs')
  await writeFile(fake, "Object.defineProperty(process, 'version', { value: 'v20.20.2' })")
  const run = (...words: string[]): Promise<Ended> =>
    home.startProgram(process.execPath, ['--require', fake, BIN, ...words]).ended
  const error = { code: 'NODE_REFUSED', message: expect.stringMatching(/v20\.20\.2.*install Node 24\.22\.1/) }
  const tools = await run('tools', '--json')
  expect(tools.code).toBe(EXIT.configuration)
  expect(JSON.parse(tools.stdout)).toEqual({ version: 1, error })
  expect(tools.stderr).toMatch(/install Node 24\.22\.1 or later/)
  const call = await run('call', 'a/b', '--json')
  expect(JSON.parse(call.stdout)).toEqual({ version: 1, outcome: 'failed', content: [], error })
  expect((await run('tools')).stdout).toBe('')
})

/** The program in this process: what does not come to an action needs no process of its own. */
async function inProcess(words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const code = await runProgram(words, {
    makeContext: () => {
      throw new Error('an action was started')
    },
    writeOut: (text) => {
      out += text
    },
  }).catch((error: unknown) => {
    if (!CommandError.is(error)) throw error
    err += error.message
    return error.exitCode
  })
  return { code, out, err }
}

verifies('command.003', async () => {
  const { code, stdout, stderr } = await home.run(['--help'])
  expect([code, stderr]).toEqual([0, ''])
  for (const [exit, meaning] of EXIT_MEANINGS) expect(stdout).toContain(`${exit}  ${meaning}`)
  expect(EXIT_MEANINGS.map(([exit]) => exit)).toEqual(Object.values(EXIT))
  const listings = ['tools', 'status', 'resources', 'prompts']
  for (const name of [
    ...listings,
    'call',
    'read',
    'prompt',
    'add',
    'list',
    'get',
    'remove',
    'login',
    'logout',
    'auth',
    'serve',
  ]) {
    expect(stdout).toMatch(new RegExp(`^  ${name}\\b.* {2}\\w`, 'm'))
    const help = await inProcess([name, '--help'])
    expect([name, help.code, help.err]).toEqual([name, 0, ''])
    expect(help.out).toContain(`Usage: convoke ${name}`)
    for (const option of ['--config', '--data-dir', '--json', '--wait', '--server', '--strict', '--no-color']) {
      expect(help.out).toContain(option)
    }
  }
  expect((await home.run([])).stdout).toBe(stdout)

  const page = await readFile(resolve(BIN, '../../../../docs/command.md'), 'utf8')
  for (const [exit, meaning] of EXIT_MEANINGS) expect(page.replaceAll('`', '')).toContain(`| ${exit} | ${meaning} |`)
  for (const name of ['', 'tools', 'call', 'read', 'add', 'serve', 'prompt', 'login', 'logout']) {
    const { out } = await inProcess([...(name === '' ? [] : [name]), '--help'])
    for (const [option] of out.matchAll(/--[a-z][a-z-]+/g))
      expect([name, option, page.includes(option)]).toEqual([name, option, true])
  }
})

verifies('command.004', async () => {
  const unparsed: [string[], RegExp][] = [
    [['tols'], /unknown command 'tols'\s+\(Did you mean tools\?\)/],
    [['--jsom', 'tools'], /unknown option '--jsom'\s+\(Did you mean --json\?\)/],
    [['call'], /missing required argument 'tool'/],
    [['tools', 'more'], /too many arguments/],
    [['tools', '--wait', 'soon'], /--wait takes a whole number of milliseconds/],
    [['tools', '--wait', '1.5'], /--wait takes a whole number of milliseconds/],
    [['tools', '--wait', '99999999999'], /--wait takes a whole number of milliseconds/],
    [['call', 'a/b', '--timeout', ''], /--timeout takes a whole number of milliseconds/],
    [['call', 'a/b', '--timeout', '0'], /--timeout takes a whole number of milliseconds from 1/],
  ]
  for (const [words, message] of unparsed) {
    const { code, out, err } = await inProcess(words)
    expect([words, code, out]).toEqual([words, EXIT.usage, ''])
    expect(err).toMatch(message)
  }
  const rows: [string[], RegExp][] = [
    [['tols'], /unknown command 'tols'\n\(Did you mean tools\?\)\n\(convoke --help explains the commands\)\n$/],
    [['--strict'], /a command is missing/],
    [['tools', '--server', 'nobody'], /There is no server "nobody"\. No server is configured/],
    [['remove', 'nobody'], /There is no server "nobody"/],
    [['call', 'a/b', 'x=1', '--args', '{}'], /either --args or key=value/],
    [['call', 'a/b', 'x'], /"x" is not an argument\. Write key=value/],
    [['call', 'a/b', '--args', '['], /--args is not JSON/],
    [['call', 'a/b', '--args', '[]'], /--args must be a JSON object/],
    [['call', 'a/b', '--args', '@/absent.json'], /\/absent\.json cannot be read \(ENOENT\)/],
    [['call', 'a/b', '--answers', '7'], /--answers must be a JSON object/],
    [['read', 'x:y', '--server', 'a', '--server', 'b'], /read takes one --server/],
    [['add', 'x'], /Give exactly one of/],
    [['serve', '--http', 'nonsense:'], /--http takes HOST:PORT/],
  ]
  for (const [words, message] of rows) {
    const { code, stdout, stderr } = await home.run(words)
    expect([words, code, stdout]).toEqual([words, EXIT.usage, ''])
    expect(stderr).toMatch(message)
  }
})

verifies('security.123', async () => {
  await home.run(['list'])
  const { stdout } = await home.startProgram('find', [
    join(home.folder, 'cache/convoke/compiled'),
    '-type',
    'f',
    '-printf',
    '%m\\n',
  ]).ended
  expect(
    stdout
      .trim()
      .split('\n')
      .every((mode) => mode === '600'),
  ).toBe(true)
  const shared = await home.startProgram(process.execPath, [BIN, 'list'], {
    env: { XDG_CACHE_HOME: 'relative', HOME: undefined, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
  }).ended
  expect(shared.code).toBe(0)
  expect(shared.stderr).not.toMatch(/compile cache/i)
})
