import { execFile } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { addServer, configSchema, HostError, loadConfig, removeServer, standardPaths } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

const run = promisify(execFile)
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-edit-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

let count = 0
async function fileWith(text: string): Promise<string> {
  count += 1
  const file = join(folder, `${count}.json`)
  await writeFile(file, text)
  return file
}

const codeOf = async (task: Promise<unknown>): Promise<[string, string]> => {
  const error = await task.then(
    () => new Error('nothing was thrown'),
    (thrown: unknown) => thrown,
  )
  if (!HostError.is(error)) throw error
  return [error.code, error.message]
}

const SAMPLE = [
  '\uFEFF{',
  '\t// the servers of this machine',
  '\t"mcpServers": {',
  '\t\t"first": { "command": "a" }, // keep me',
  '\t\t/* and me */',
  '\t\t"second": { "command": "b", "args": ["x",] },',
  '\t},',
  '\t"$schema": "x",',
  '}',
  '',
].join('\r\n')

verifies('config.018', async () => {
  const file = await fileWith(SAMPLE)
  await chmod(file, 0o640)
  await addServer(file, 'third/né"w', { url: 'https://example.com' })
  const added = await readFile(file, 'utf8')
  expect(added.startsWith('\uFEFF{\r\n\t// the servers of this machine\r\n')).toBe(true)
  expect(added).toContain(
    '"first": { "command": "a" }, // keep me\r\n\t\t/* and me */\r\n\t\t"second": { "command": "b", "args": ["x",] },',
  )
  expect(added.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
  expect(added).toMatch(/\r\n\t\t"third\/né\\"w": \{\r\n\t\t\t"url": "https:\/\/example\.com"\r\n\t\t\}/)
  expect((await stat(file)).mode & 0o777).toBe(0o640)
  const loaded = await loadConfig({ files: [{ path: file, layer: 'user' }] })
  expect(loaded.problems).toEqual([])
  expect(loaded.definitions.map(({ name }) => name)).toEqual(['first', 'second', 'third/né"w'])

  expect(await removeServer(file, 'third/né"w')).toBe(true)
  expect(await removeServer(file, 'second')).toBe(true)
  const removed = await readFile(file, 'utf8')
  expect(removed).toContain('// the servers of this machine')
  expect(removed).toContain('// keep me')
  const left = await loadConfig({ files: [{ path: file, layer: 'user' }] })
  expect(left.problems).toEqual([])
  expect(left.definitions.map(({ name }) => name)).toEqual(['first'])

  expect(await removeServer(file, 'nobody')).toBe(false)
  expect(await readFile(file, 'utf8')).toBe(removed)
  expect(await removeServer(join(folder, 'absent', 'x.json'), 'nobody')).toBe(false)
  expect(await readdir(folder)).not.toContain('absent')
})

test('refuses a name that is taken unless it may be replaced, and removes every repeat', async () => {
  const file = await fileWith('{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"},"a":{"command":"z"}}}')
  expect(await codeOf(addServer(file, 'a', { command: 'q' }))).toEqual([
    'ALREADY_DEFINED',
    `${file} already has a server "a".`,
  ])
  expect(await removeServer(file, 'a')).toBe(true)
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ mcpServers: { b: { command: 'y' } } })
  await addServer(file, 'b', { command: 'new' }, { replace: true })
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ mcpServers: { b: { command: 'new' } } })
  expect((await codeOf(addServer(file, 'a\u0000', {})))[0]).toBe('CONFIG_PROBLEM')
})

test('writes into a file that is empty, holds only comments, or has no mcpServers yet', async () => {
  for (const text of ['', '\n', '// mine\n', '{}', '{ "$schema": "x" }', '{"mcpServers":{}}']) {
    const file = await fileWith(text)
    await addServer(file, '__proto__', { command: 'x' })
    const after = await readFile(file, 'utf8')
    if (text.includes('mine')) expect(after).toContain('// mine')
    const { problems, definitions } = await loadConfig({ files: [{ path: file, layer: 'user' }] })
    expect([text, problems, definitions.map(({ name }) => name)]).toEqual([text, [], ['__proto__']])
  }
})

verifies('config.019', async () => {
  const file = await fileWith('{ "mcpServers": {} }')
  const script = join(folder, 'add.ts')
  await writeFile(
    script,
    `import { addServer } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, '../src/index.ts')).href)}
     const [file, from] = process.argv.slice(2)
     for (let index = 0; index < 5; index += 1) await addServer(file ?? '', from + '-' + index, { command: 'x' })`,
  )
  const names = ['p', 'q', 'r', 's', 't', 'u']
  await Promise.all(names.map((name) => run(process.execPath, ['--conditions=@convoke/source', script, file, name])))
  const { definitions, problems } = await loadConfig({ files: [{ path: file, layer: 'user' }] })
  expect(problems).toEqual([])
  expect(definitions.map(({ name }) => name).sort()).toEqual(
    names.flatMap((name) => [0, 1, 2, 3, 4].map((index) => `${name}-${index}`)).sort(),
  )
  await rm(script)
})

test('takes over the lock of a process that is gone, and leaves no file of its own behind', async () => {
  const file = await fileWith('{}')
  const { stdout } = await run(process.execPath, ['-p', 'process.pid'])
  await writeFile(join(folder, `.${count}.json.lock`), stdout.trim())
  await addServer(file, 'a', { command: 'x' })
  expect((await readdir(folder)).filter((name) => name.startsWith('.'))).toEqual([])
})

verifies('config.020', async () => {
  const texts = [
    '{"mcpServers":{"a":{"command":"x"}',
    '{"mcpServers":[]}',
    '[]',
    '{"mcpServers":{"a":{"command":"x"}},}}',
  ]
  for (const text of texts) {
    const file = await fileWith(text)
    const [code, message] = await codeOf(addServer(file, 'b', { command: 'y' }))
    expect(code).toBe('CONFIG_PROBLEM')
    expect(message).toMatch(/nothing was changed/)
    expect((await codeOf(removeServer(file, 'a')))[0]).toBe('CONFIG_PROBLEM')
    expect(await readFile(file, 'utf8')).toBe(text)
  }
  const damaged = await fileWith('')
  await writeFile(damaged, Buffer.from([0x7b, 0x7d, 0x2f, 0x2f, 0xff]))
  expect((await codeOf(addServer(damaged, 'b', {})))[1]).toMatch(/UTF-8/)
})

verifies('config.021', async () => {
  const published = await readFile(join(import.meta.dirname, '../convoke.schema.json'), 'utf8')
  expect(published).toBe(`${JSON.stringify(configSchema(), null, 2)}\n`)
  const schema = JSON.parse(published) as {
    $defs: { server: { properties: Record<string, { description?: string }> } }
  }
  const fields = schema.$defs.server.properties
  expect(Object.keys(fields)).toEqual(expect.arrayContaining(['command', 'url', 'toolTimeoutMs', 'tools', 'disabled']))
  expect(Object.values(fields).every(({ description }) => description !== undefined)).toBe(true)
  const text = JSON.stringify({
    mcpServers: { one: { command: 'a', ...Object.fromEntries(Object.keys(fields).map((key) => [key, null])) } },
  })
  const { problems } = await loadConfig({ files: [{ path: await fileWith(text), layer: 'user' }] })
  expect(problems.filter(({ code }) => code === 'CONFIG_KEY_UNKNOWN')).toEqual([])
})

verifies('config.022', async () => {
  const good = await fileWith('{"mcpServers":{"a":{"command":"x"}}}')
  const utf16 = await fileWith('')
  await writeFile(utf16, Buffer.from('\uFEFF{}', 'utf16le'))
  const nested = join(folder, 'a-folder')
  await mkdir(nested)
  const files = [
    { path: good, layer: 'user' },
    { path: nested, layer: 'flag' },
    { path: utf16, layer: 'flag' },
    { path: join(folder, 'absent.json'), layer: 'flag' },
    { path: join(folder, 'absent.json'), layer: 'user' },
  ] as const
  const { definitions, problems } = await loadConfig({ files })
  expect(definitions.map(({ name }) => name)).toEqual(['a'])
  expect(problems.map(({ code, message }) => [code, message])).toEqual([
    ['CONFIG_FILE_NOT_REGULAR', `${nested}: is a folder, not a file.`],
    ['CONFIG_FILE_ENCODING', `${utf16}: is UTF-16; save it as UTF-8.`],
    ['CONFIG_FILE_NOT_FOUND', `${join(folder, 'absent.json')}: does not exist.`],
  ])
  const open = await fileWith('{}')
  await chmod(open, 0o666)
  const warned = await loadConfig({ files: [{ path: open, layer: 'user' }] })
  expect(warned.problems.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
    'warning CONFIG_FILE_PERMISSIONS',
  ])
})

verifies('config.023', () => {
  const at = (platform: string, env: Record<string, string> = {}, dataDirectory?: string): readonly string[] => {
    const paths = standardPaths({ env, homeDirectory: '/h', platform, ...(dataDirectory && { dataDirectory }) })
    return [paths.configFile, paths.stateDirectory, paths.cacheDirectory]
  }
  expect(at('linux')).toEqual(['/h/.config/convoke/convoke.json', '/h/.local/state/convoke', '/h/.cache/convoke'])
  expect(at('linux', { XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s', XDG_CACHE_HOME: '/k' })).toEqual([
    '/c/convoke/convoke.json',
    '/s/convoke',
    '/k/convoke',
  ])
  expect(at('linux', { XDG_CONFIG_HOME: 'relative', XDG_STATE_HOME: '' })[0]).toBe('/h/.config/convoke/convoke.json')
  expect(at('darwin')).toEqual([
    '/h/Library/Application Support/convoke/convoke.json',
    '/h/Library/Application Support/convoke',
    '/h/Library/Caches/convoke',
  ])
  expect(at('linux', {}, '/d').slice(1)).toEqual(['/d/state', '/d/cache'])
  expect(at('win32', { APPDATA: 'C:\\r', LOCALAPPDATA: 'C:\\l' }).map((path) => path.replaceAll('\\', '/'))).toEqual([
    'C:/r/convoke/convoke.json',
    'C:/l/State/convoke',
    'C:/l/Cache/convoke',
  ])
})

verifies('security.105', async () => {
  const pipe = join(folder, 'pipe')
  await run('mkfifo', [pipe])
  const files = [
    { path: pipe, layer: 'flag' },
    { path: '/dev/zero', layer: 'flag' },
  ] as const
  const { problems } = await loadConfig({ files })
  expect(problems.map(({ code }) => code)).toEqual(['CONFIG_FILE_NOT_REGULAR', 'CONFIG_FILE_NOT_REGULAR'])
  await rm(pipe)
})

verifies('security.106', async () => {
  const file = join(folder, 'new', 'deep', 'convoke.json')
  await addServer(file, 'a', { command: 'x' })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(join(folder, 'new', 'deep'))).mode & 0o777).toBe(0o700)
  const link = join(folder, 'link.json')
  await symlink(file, link)
  await addServer(link, 'b', { command: 'y' })
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect(Object.keys((JSON.parse(await readFile(file, 'utf8')) as { mcpServers: object }).mcpServers)).toEqual([
    'a',
    'b',
  ])
  const dangling = join(folder, 'dangling.json')
  await symlink('later.json', dangling)
  await addServer(dangling, 'c', { command: 'z' })
  expect((await lstat(dangling)).isSymbolicLink()).toBe(true)
  expect(JSON.parse(await readFile(join(folder, 'later.json'), 'utf8'))).toEqual({
    mcpServers: { c: { command: 'z' } },
  })
  const loop = join(folder, 'loop.json')
  await symlink('loop.json', loop)
  expect((await codeOf(addServer(loop, 'd', {})))[1]).toMatch(/leads nowhere/)
  await chmod(file, 0o444)
  expect((await codeOf(addServer(file, 'c', {})))[1]).toMatch(/is read-only\. Nothing was changed/)
})
