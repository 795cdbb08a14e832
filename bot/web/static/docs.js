// The page at /docs: the OpenAPI document, laid out by Swagger UI.

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  validatorUrl: null, // asks no outside host
});
