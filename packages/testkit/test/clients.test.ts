import { expect, test } from 'vitest'
import { CLIENTS, countSeen, faultOf } from '../clients/clients.ts'
import { startModel } from '../clients/model-server.ts'
import { startSdk2Http, verifies } from '../src/index.ts'

const post = async (url: string, body: object): Promise<string> =>
  (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).text()

test.for([
  {
    wire: 'Responses',
    path: '/v1/responses',
    first: {
      tools: [
        { type: 'function', name: 'shell' },
        {
          type: 'namespace',
          name: 'mcp__convoke',
          tools: [{ name: 'x__echo', parameters: { properties: { message: {} } } }],
        },
      ],
    },
    call: '"namespace":"mcp__convoke","arguments":"{\\"message\\":\\"hi\\"}"',
    names: ['shell', 'mcp__convoke/x__echo'],
    second: { input: [{ type: 'function_call_output', output: 'hi there' }] },
  },
  {
    wire: 'Chat Completions',
    path: '/v1/chat/completions',
    first: { stream: true, tools: [{ function: { name: 'x_echo', parameters: { properties: { text: {} } } } }] },
    call: '"name":"x_echo","arguments":"{\\"text\\":\\"hi\\"}"',
    names: ['x_echo'],
    second: { messages: [{ role: 'tool', content: 'hi there' }] },
  },
  {
    wire: 'Gemini',
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    first: {
      tools: [{ functionDeclarations: [{ name: 'x_echo', parametersJsonSchema: { properties: { text: {} } } }] }],
    },
    call: '"functionCall":{"name":"x_echo","args":{"text":"hi"}}',
    names: ['x_echo'],
    second: { contents: [{ parts: [{ functionResponse: { response: { output: 'hi there' } } }] }] },
  },
])('the scripted model calls the echo tool once over $wire', async ({ path, first, call, names, second }) => {
  await using model = await startModel('hi')
  expect(await post(`${model.url}${path}`, {})).toContain('A title')
  expect(await post(`${model.url}${path}`, first)).toContain(call)
  expect(await post(`${model.url}${path}`, { ...first, ...second })).toContain('The tool said')
  expect(model.toolNames).toEqual(names)
  expect(model.outputs.join()).toContain('hi there')
})

test('names count under the prefixes that clients put before them', () => {
  expect(countSeen(['a__b', 'c'], ['mcp_convoke_a__b', 'mcp__convoke/c'])).toBe(2)
  expect(countSeen(['a__b', 'c'], ['a__bc', 'cc'])).toBe(0)
  expect(countSeen(['a__get-b'], ['mcp__convoke/a__get_b'])).toBe(1)
})

verifies('house.005', async () => {
  const outcome = { toolNames: ['x_echo'], answer: 'hello' }
  expect(faultOf(outcome, ['echo'], 'hello')).toBeUndefined()
  expect(faultOf(outcome, ['echo', 'other'], 'hello')).toBe('saw 1 of 2 tools: x_echo')
  expect(faultOf(outcome, ['echo'], 'bye')).toBe('the echo answered hello')

  await using server = await startSdk2Http()
  const world = { url: server.url, folders: new Map<string, string>(), echo: { tool: 'echo', argument: 'text' } }
  for (const { name, installed, run } of CLIENTS) {
    if (installed === undefined)
      expect(faultOf(await run(world, name), ['echo', 'test_simple_text'], name)).toBeUndefined()
    else await expect(run(world, name)).rejects.toThrow('is not installed')
  }
})
