// Resources and prompts under the names that the conformance suite asks for, and the small media that tools return.
import {
  acceptedContent,
  type GetPromptResult,
  type InputRequiredResult,
  inputRequired,
  type Prompt,
  ProtocolError,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplateType,
  type ServerContext,
} from '@modelcontextprotocol/server'

/** One red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
/** A WAVE header with no samples. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

const INVALID_PARAMS = -32602

export const resources: Resource[] = [
  {
    uri: 'test://static-text',
    name: 'static-text',
    description: 'A text that never changes',
    mimeType: 'text/plain',
  },
  {
    uri: 'test://static-binary',
    name: 'static-binary',
    description: 'A picture that never changes',
    mimeType: 'image/png',
  },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text that can be subscribed to',
    mimeType: 'text/plain',
  },
]

export const resourceTemplates: ResourceTemplateType[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'Data by id',
    mimeType: 'application/json',
  },
]

/** @throws {ProtocolError} -32602 with the URI, for one that is not there. */
export function readResource(uri: string): ReadResourceResult {
  if (uri === 'test://static-text') {
    return { contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }] }
  }
  if (uri === 'test://static-binary') return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] }
  if (uri === 'test://watched-resource')
    return { contents: [{ uri, mimeType: 'text/plain', text: 'Watched resource content.' }] }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined) throw new ProtocolError(INVALID_PARAMS, 'Resource not found', { uri })
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
  return { contents: [{ uri, mimeType: 'application/json', text }] }
}

export const prompts: Prompt[] = [
  { name: 'test_simple_prompt', description: 'A prompt without arguments' },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments',
    arguments: [
      { name: 'arg1', description: 'The first', required: true },
      { name: 'arg2', description: 'The second', required: true },
    ],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that carries a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource', required: true }],
  },
  { name: 'test_prompt_with_image', description: 'A prompt that carries a picture' },
  { name: 'test_input_required_result_prompt', description: 'A prompt that asks before it answers' },
]

/** @throws {ProtocolError} -32602 for a prompt that is not there. */
export function getPrompt(
  name: string,
  args: Readonly<Record<string, string>>,
  context: ServerContext,
): GetPromptResult | InputRequiredResult {
  switch (name) {
    case 'test_simple_prompt':
      return said('This is a simple prompt for testing.')
    case 'test_prompt_with_arguments':
      return said(`Prompt with arguments: arg1='${args['arg1']}', arg2='${args['arg2']}'`)
    case 'test_prompt_with_embedded_resource':
      return withEmbedded(args['resourceUri'] ?? '')
    case 'test_prompt_with_image':
      return {
        messages: [
          { role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
          ...said('Please analyze the image above.').messages,
        ],
      }
    case 'test_input_required_result_prompt':
      return askingPrompt(context)
    default:
      throw new ProtocolError(INVALID_PARAMS, `Unknown prompt: ${name}`)
  }
}

function said(text: string): GetPromptResult {
  return { messages: [{ role: 'user', content: { type: 'text', text } }] }
}

function withEmbedded(uri: string): GetPromptResult {
  const resource = { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }
  return {
    messages: [
      { role: 'user', content: { type: 'resource', resource } },
      ...said('Please process the embedded resource above.').messages,
    ],
  }
}

function askingPrompt(context: ServerContext): GetPromptResult | InputRequiredResult {
  const given = acceptedContent<{ context?: string }>(context.mcpReq.inputResponses, 'user_context')
  if (given?.context !== undefined) return said(`Use this context: ${given.context}`)
  return inputRequired({
    inputRequests: {
      user_context: inputRequired.elicit({
        message: 'What context should the prompt use?',
        requestedSchema: { type: 'object', properties: { context: { type: 'string' } }, required: ['context'] },
      }),
    },
  })
}
