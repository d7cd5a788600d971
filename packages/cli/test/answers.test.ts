import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { everythingStdio, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf, SCHEMAS } from './answer-schemas.ts'
import { Home } from './command.ts'
import { entryOf, scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

verifies('command.019', async () => {
  await home.configure({
    every: entryOf(everythingStdio()),
    s: scripted({ banner: ['noise'] }),
    exits: scripted({ exitAtStart: { code: 3 }, stderr: ['no licence'] }),
    wrong: { comand: 'x' },
    web: { url: 'http://127.0.0.1:9/mcp', headers: { A: 'b' } },
    off: { command: 'x', disabled: true, env: { TOKEN: 'x' } },
  })
  const uri = 'demo://resource/static/document/startup.md'
  const rows: [string, string[]][] = [
    ['tools', ['tools']],
    ['status', ['status']],
    ['tools', ['tools', '--live']],
    ['status', ['status', '--live']],
    ['plan', ['plan']],
    ['plan', ['plan', '--config', home.configFile]],
    ['explain', ['explain', 's']],
    ['explain', ['explain', 'exits']],
    ['explain', ['explain', 'wrong', '--no-start']],
    ['explain', ['explain', 's/echo']],
    ['explain', ['explain', 'echo', '--config', home.configFile]],
    ['resources', ['resources']],
    ['prompts', ['prompts']],
    ['list', ['list']],
    ['get', ['get', 'off']],
    ['get', ['get', 'wrong']],
    ['add', ['add', 'more', '--', 'x']],
    ['remove', ['remove', 'more']],
    ['auth-status', ['auth', 'status']],
    ['logout', ['logout', 'web']],
    ['read', ['read', uri, '--server', 'every']],
    ['prompt', ['prompt', 'every/simple-prompt']],
    ['call', ['call', 's/echo', 'text=x']],
    ['call', ['call', 's/structured']],
    ['call', ['call', 's/fail']],
    ['call', ['call', 's/refuse']],
    ['call', ['call', 's/crash']],
    ['call', ['call', 'nobody/x']],
    ['call', ['call', 'exits/x']],
    ['error', ['get', 'nobody']],
    ['error', ['tools', '--server', 'nobody']],
    ['error', ['read', 'nobody://x']],
    ['error', ['list', '--config', '/absent.json']],
    ['error', ['prompt', 's/nothing']],
    ['error', ['explain', 'nobody']],
    ['error', ['plan', '--config', '/absent.json']],
    ['error', ['login', 's']],
    ['error', ['logout', 'nobody']],
    ['error', ['auth']],
    ['error', ['tols']],
    ['error', []],
    ['call', ['call']],
    ['call', ['call', 's/echo', '--args', '[']],
  ]
  for (const [schema, words] of rows) {
    const { stdout } = await home.run(['--json', ...words])
    expect(stdout.split('\n')).toHaveLength(2)
    expect([words, await faultsOf(schema, stdout)]).toEqual([words, []])
  }
  const serving = home.start(['serve', '--json', '--http', '127.0.0.1:0', '--require-token', '--server', 's'])
  await serving.seen(/"ready"/)
  serving.child.kill('SIGTERM')
  const lines = (await serving.ended).stdout.trim().split('\n')
  expect(lines).toHaveLength(2)
  for (const line of lines) expect(await faultsOf('serve', line)).toEqual([])
})

test('has a title and a version in every schema, and notices a wrong answer', async () => {
  const names = (await readdir(SCHEMAS)).map((name) => name.replace('.schema.json', ''))
  expect(names.length).toBe(18)
  for (const name of names) {
    const text = await readFile(join(SCHEMAS, `${name}.schema.json`), 'utf8')
    expect(text).toContain('"const": 1')
    expect(await faultsOf(name, '{"version":2}')).not.toEqual([])
  }
})
