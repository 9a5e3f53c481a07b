# Optional: a function that ends machines which have outlived the stop that their tag names.
data "archive_file" "reaper" {
  count       = var.reaper ? 1 : 0
  type        = "zip"
  source_file = "${local.files}/reaper/reaper.py"
  output_path = "${path.module}/reaper.zip"
}

resource "aws_iam_role" "reaper" {
  count              = var.reaper ? 1 : 0
  name               = "cloudwhale-reaper"
  assume_role_policy = local.policies["reaper-trust"]
  tags               = var.tags
}

resource "aws_iam_role_policy" "reaper" {
  count  = var.reaper ? 1 : 0
  name   = "ends"
  role   = aws_iam_role.reaper[0].name
  policy = local.policies["reaper-policy"]
}

resource "aws_cloudwatch_log_group" "reaper" {
  count             = var.reaper ? 1 : 0
  name              = "/aws/lambda/cloudwhale-reaper"
  retention_in_days = 90
  tags              = var.tags
}

resource "aws_lambda_function" "reaper" {
  count            = var.reaper ? 1 : 0
  function_name    = "cloudwhale-reaper"
  role             = aws_iam_role.reaper[0].arn
  runtime          = "python3.13"
  handler          = "reaper.handler"
  filename         = data.archive_file.reaper[0].output_path
  source_code_hash = data.archive_file.reaper[0].output_base64sha256
  timeout          = 120
  tags             = var.tags

  environment {
    variables = {
      REGIONS = join(",", var.regions)
    }
  }

  depends_on = [aws_cloudwatch_log_group.reaper, aws_iam_role_policy.reaper]
}

resource "aws_cloudwatch_event_rule" "reaper" {
  count               = var.reaper ? 1 : 0
  name                = "cloudwhale-reaper"
  schedule_expression = "rate(5 minutes)"
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "reaper" {
  count = var.reaper ? 1 : 0
  rule  = aws_cloudwatch_event_rule.reaper[0].name
  arn   = aws_lambda_function.reaper[0].arn
}

resource "aws_lambda_permission" "reaper" {
  count         = var.reaper ? 1 : 0
  statement_id  = "EventBridge"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.reaper[0].function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.reaper[0].arn
}
