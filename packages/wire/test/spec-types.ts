// Compiled, never run: our types against those of both official SDKs, so that a change of the specification shows as a type error here. `tsc -p tsconfig.check.json`

import type {
  ContentBlock,
  Prompt,
  PromptArgument,
  Resource,
  ResourceTemplate,
  RpcError,
  SubscriptionFilter,
  Tool,
  ToolResult,
} from '@convoke/wire'
import type * as V2 from '@modelcontextprotocol/client'
import type * as V1 from '@modelcontextprotocol/sdk/types.js'

/** The members that a type names, without those that "any other member" stands for. */
type Named<Type> = { [Key in keyof Type as string extends Key ? never : Key]: Type[Key] }
type NamedKeys<Type> = keyof Named<Type>
/** Without the question whether an absent member may also be written as undefined. */
type Given<Type> = { [Key in keyof Type]-?: Exclude<Type[Key], undefined> }
type RequiredKeys<Type> = { [Key in keyof Type]-?: object extends Pick<Type, Key> ? never : Key }[keyof Type]
/** What is official for the members that we name fits our type of them, and what we rely on is always there. */
type Fits<Official, Ours> =
  Given<Pick<Official, NamedKeys<Ours> & keyof Official>> extends Given<Pick<Ours, NamedKeys<Ours> & keyof Official>>
    ? [RequiredKeys<Named<Ours>>] extends [RequiredKeys<Official>]
      ? true
      : false
    : false
/** Official members that we do not name: pinned, so that new ones are noticed. */
type Unnamed<Official, Ours> = Exclude<NamedKeys<Official>, NamedKeys<Ours>>
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** Does not compile unless every member is true. */
type AllTrue<_Facts extends Record<string, true>> = true

export type Version2 = AllTrue<{
  tool: Fits<V2.Tool, Tool>
  toolRest: Same<Unnamed<V2.Tool, Tool>, 'icons' | 'execution'>
  resource: Fits<V2.Resource, Resource>
  resourceRest: Same<Unnamed<V2.Resource, Resource>, 'icons' | 'annotations' | 'size'>
  template: Fits<V2.ResourceTemplateType, ResourceTemplate>
  templateRest: Same<Unnamed<V2.ResourceTemplateType, ResourceTemplate>, 'icons' | 'annotations'>
  prompt: Fits<Omit<Named<V2.Prompt>, 'arguments'>, Prompt>
  promptRest: Same<Unnamed<V2.Prompt, Prompt>, 'icons'>
  argument: Fits<V2.PromptArgument, PromptArgument>
  argumentRest: Same<Unnamed<V2.PromptArgument, PromptArgument>, never>
  result: Fits<V2.CallToolResult, ToolResult>
  resultRest: Same<Unnamed<V2.CallToolResult, ToolResult>, never>
  block: Fits<V2.ContentBlock, ContentBlock>
  blockKinds: Same<V2.ContentBlock['type'], 'text' | 'image' | 'audio' | 'resource_link' | 'resource'>
  error: Fits<V2.JSONRPCErrorResponse['error'], RpcError>
  filter: Fits<V2.SubscriptionFilter, SubscriptionFilter>
  filterRest: Same<Unnamed<V2.SubscriptionFilter, SubscriptionFilter>, never>
  asks: Same<V2.ServerRequest['method'], 'ping' | 'sampling/createMessage' | 'elicitation/create' | 'roots/list'>
}>

export type Version1 = AllTrue<{
  tool: Fits<V1.Tool, Tool>
  toolRest: Same<Unnamed<V1.Tool, Tool>, 'icons' | 'execution'>
  resource: Fits<V1.Resource, Resource>
  template: Fits<V1.ResourceTemplate, ResourceTemplate>
  prompt: Fits<Omit<Named<V1.Prompt>, 'arguments'>, Prompt>
  argument: Fits<V1.PromptArgument, PromptArgument>
  result: Fits<V1.CallToolResult, ToolResult>
  asks: Same<
    Exclude<V1.ServerRequest['method'], `tasks/${string}`>,
    'ping' | 'sampling/createMessage' | 'elicitation/create' | 'roots/list'
  >
}>
