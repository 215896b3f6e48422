import type { OpenApiText } from '../../routes/docs.ts';

/** Made when first asked for, and the code for it loaded then: a start needs neither. */
export function generatedOpenApi(): OpenApiText {
  let text: string | undefined;
  return async () => {
    const { openApiText } = await import('../../routes/openapi/document.ts');
    text ??= openApiText();
    return text;
  };
}
