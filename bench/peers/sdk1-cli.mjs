// The command on SDK v1: `node sdk1-cli.mjs CONFIG list | call SERVER TOOL JSON`
import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const [file, command, server, tool, args] = process.argv.slice(2)
const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'))

async function open(name) {
  const client = new Client({ name: 'cli', version: '1' })
  await client.connect(new StdioClientTransport({ ...mcpServers[name], stderr: 'ignore' }))
  return client
}

async function list(name) {
  const client = await open(name)
  const { tools } = await client.listTools()
  void client.close()
  return { name, tools }
}

async function call() {
  const client = await open(server)
  const result = await client.callTool({ name: tool, arguments: JSON.parse(args) })
  void client.close()
  return result
}

const answer = command === 'list' ? await Promise.all(Object.keys(mcpServers).map(list)) : await call()
process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0))
