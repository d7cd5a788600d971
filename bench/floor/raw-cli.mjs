// The command floor: connect to the servers of a configuration, list or call, print JSON, exit. `node raw-cli.mjs CONFIG list | call SERVER TOOL JSON`
import { readFileSync } from 'node:fs'
import { RawStdio } from './raw-client.mjs'

const [file, command, server, tool, args] = process.argv.slice(2)
const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'))

async function open(name) {
  const client = new RawStdio(mcpServers[name])
  await client.connect()
  return client
}

async function list(name) {
  const client = await open(name)
  const tools = await client.listTools()
  client.close()
  return { name, tools }
}

async function call() {
  const client = await open(server)
  const result = await client.callTool(tool, JSON.parse(args))
  client.close()
  return result
}

const answer = command === 'list' ? await Promise.all(Object.keys(mcpServers).map(list)) : await call()
process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0))
